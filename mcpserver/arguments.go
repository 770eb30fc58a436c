package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/limpet-sh/limpet/internal/runes"
)

// problem is something that is wrong with the arguments of a call. Nothing was done.
type problem struct {
	about []string // the arguments
	text  string
}

func (p problem) Error() string { return p.text }

// badArgument is an error for an argument that is found wrong when the call is carried out.
func badArgument(format string, args ...any) error {
	return problem{text: fmt.Sprintf(format, args...)}
}

// problems are all that is wrong with a call, in a fixed order.
type problems []problem

// add adds one. About names the arguments, with blanks between them.
func (p *problems) add(about, format string, args ...any) {
	*p = append(*p, problem{strings.Fields(about), fmt.Sprintf(format, args...)})
}

// when adds one if a condition holds.
func (p *problems) when(wrong bool, about, format string, args ...any) {
	if wrong {
		p.add(about, format, args...)
	}
}

// and adds those that are not about arguments in which something is wrong already.
func (p problems) and(more problems) problems {
	var bad []string
	for _, one := range p {
		bad = append(bad, one.about...)
	}
	for _, one := range more {
		if !slices.ContainsFunc(one.about, func(name string) bool { return slices.Contains(bad, name) }) {
			p = append(p, one)
		}
	}
	return p
}

// text is for a model, with a call that is right.
func (p problems) text(tool, example string) string {
	var text strings.Builder
	if len(p) == 1 {
		fmt.Fprintf(&text, "nothing was done: %s\n", p[0].text)
	} else {
		fmt.Fprintf(&text, "nothing was done, as %d things are wrong with the arguments:\n", len(p))
		for _, one := range p {
			fmt.Fprintf(&text, "- %s\n", one.text)
		}
	}
	fmt.Fprintf(&text, "A right call of %s: %s", tool, example)
	return text.String()
}

// decode understands the arguments of a call, and decodes what is right of them into in. A
// foreground call can have a timeout of longest seconds.
func (s schemas) decode(arguments json.RawMessage, in any, longest float64) (wrong problems) {
	given, err := objectOf(arguments)
	if err != nil {
		wrong.add(strings.Join(s.names(), " "), "%v", err) // Whatever else is found wrong follows from that.
		return wrong
	}
	if background, _ := s.first("background", given).(bool); background {
		longest = math.Inf(1)
	}
	right := make(map[string]any)
	for _, name := range s.names() {
		if value := s.take(name, given, longest, &wrong); value != nil {
			right[name] = value
		}
	}
	s.requires(right, &wrong)
	maps.DeleteFunc(given, s.meansNothing)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		wrong.add(name, "there is no argument %q%s", name, s.instead(name))
	}
	if len(given) > 0 && len(s.in.PropertyOrder) > 0 {
		wrong[len(wrong)-1].text += "; there are: " + strings.Join(s.in.PropertyOrder, ", ")
	}
	checked, err := json.Marshal(right)
	if err == nil {
		err = json.Unmarshal(checked, in)
	}
	if err != nil { // A number that is whole, and has no room in an int64.
		wrong.add("", "the arguments: %v", err)
	}
	return wrong
}

// objectOf decodes the arguments. Some clients send them as a string that has them as JSON.
func objectOf(arguments json.RawMessage) (map[string]any, error) {
	given := make(map[string]any)
	if len(bytes.TrimSpace(arguments)) == 0 {
		return given, nil
	}
	if text := ""; bytes.HasPrefix(arguments, []byte{'"'}) && json.Unmarshal(arguments, &text) == nil {
		arguments = json.RawMessage(text)
	}
	if err := json.Unmarshal(arguments, &given); err != nil {
		return nil, fmt.Errorf("the arguments are no JSON object: %s", quoted(string(arguments)))
	}
	return given, nil
}

// names are the arguments, in the order in which clients see them.
func (s schemas) names() []string {
	return append(slices.Clone(s.in.PropertyOrder), slices.Sorted(maps.Keys(s.hidden))...)
}

// property returns the schema of an argument, or nil if the tool has no such argument.
func (s schemas) property(name string) *jsonschema.Schema {
	if p := s.in.Properties[name]; p != nil {
		return p
	}
	return s.hidden[name]
}

// first is the value of an argument under the first of its names that was given.
func (s schemas) first(name string, given map[string]any) any {
	for _, as := range s.spellings[name] {
		if value, ok := given[as.name]; ok {
			return coerced(s.property(name), value)
		}
	}
	return nil
}

// take removes an argument from what was given, under all of its names, and returns its
// value. It returns nil if the argument is missing or wrong.
func (s schemas) take(name string, given map[string]any, longest float64, wrong *problems) (value any) {
	property, before := s.property(name), ""
	for _, as := range s.spellings[name] {
		this, ok := given[as.name]
		delete(given, as.name)
		if !ok || this == nil { // Some clients send null for what was left out.
			continue
		}
		label := strconv.Quote(as.name)
		this = coerced(property, this)
		if text := mistyped(property, this); text != "" {
			wrong.add(name, "%s must be %s", label, text)
			continue
		}
		if n, ok := this.(float64); ok && as.as != nil {
			if this = as.as(n, longest); this != n {
				label += fmt.Sprintf(", that is %q,", name)
			}
		}
		if text := unbounded(property, this); text != "" {
			wrong.add(name, "%s %s", label, text)
			continue
		}
		if value != nil && !reflect.DeepEqual(value, this) {
			wrong.add(name, "%q and %q mean the same, and are given as %s and %s: give one of them", before, as.name, shownValue(value), shownValue(this))
			continue
		}
		value, before = this, as.name
		for also, what := range as.also {
			if s.property(also) != nil && s.first(also, given) == nil {
				given[also] = what
			}
		}
	}
	return value
}

// requires says what is missing. A call that sets a hidden argument needs no other.
func (s schemas) requires(right map[string]any, wrong *problems) {
	for name := range s.hidden {
		if right[name] == true {
			return
		}
	}
	var missing problems
	for _, name := range s.in.Required {
		_, ok := right[name]
		missing.when(!ok, name, "%q is missing: %s", name, s.in.Properties[name].Description)
	}
	*wrong = wrong.and(missing)
}

// coerced is a value as an argument's type has it, if it is clear which is meant: models
// write numbers and booleans as strings, one string for a list, and lists as JSON.
func coerced(property *jsonschema.Schema, value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	switch property.Type {
	case "number", "integer":
		var n float64
		if json.Unmarshal([]byte(text), &n) == nil {
			return n
		}
	case "boolean":
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true":
			return true
		case "false":
			return false
		}
	case "array":
		var list []string // [0-9] is a pattern, and no list.
		if json.Unmarshal([]byte(text), &list) != nil || list == nil {
			list = []string{text}
		}
		values := make([]any, len(list))
		for i, one := range list {
			values[i] = one
		}
		return values
	}
	return value
}

// mistyped says what a value must be instead of what it is; nothing if it is right.
func mistyped(property *jsonschema.Schema, value any) string {
	if !isOf(property.Type, value) {
		return article(property.Type) + ", and is " + article(typeOf(value)) + inBrackets(value)
	}
	list, _ := value.([]any)
	for _, one := range list {
		if !isOf(property.Items.Type, one) {
			return fmt.Sprintf("an array of which each is %s, and has %s", article(property.Items.Type), article(typeOf(one)))
		}
	}
	return ""
}

// inBrackets shows a value from which it may be seen what was meant.
func inBrackets(value any) string {
	switch value := value.(type) {
	case string:
		return " (" + quoted(value) + ")"
	case float64: // Where an integer is wanted: a fraction, or one that is too large.
		return " (" + plainly(value) + ")"
	}
	return ""
}

// plainly writes a number as a person would, without an exponent unless it is absurd.
func plainly(n float64) string {
	const absurd = 1e15
	if math.Abs(n) < absurd {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(n)
}

// unbounded returns the allowed values if the value is not among them, else "".
func unbounded(property *jsonschema.Schema, value any) string {
	if len(property.Enum) > 0 && !slices.Contains(property.Enum, value) {
		var values []string
		for _, v := range property.Enum {
			values = append(values, fmt.Sprintf("%q", v))
		}
		return fmt.Sprintf("is %s, and must be one of %s", shownValue(value), strings.Join(values, ", "))
	}
	n, ok := value.(float64)
	if !ok {
		return ""
	}
	if low := property.Minimum; low != nil && n < *low {
		return fmt.Sprintf("is %v, and must be %v or more", n, *low)
	}
	if high := property.Maximum; high != nil && n > *high {
		return fmt.Sprintf("is %v, and must be %v or less", n, *high)
	}
	return ""
}

// typeOf is what JSON Schema calls the type of a decoded value.
func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case nil:
		return "null"
	}
	return "object"
}

func isOf(want string, value any) bool {
	if n, ok := value.(float64); ok && want == "integer" {
		return n == float64(int64(n))
	}
	return want == "" || typeOf(value) == want
}

func article(kind string) string {
	if strings.HasPrefix(kind, "a") || strings.HasPrefix(kind, "i") || strings.HasPrefix(kind, "o") {
		return "an " + kind
	}
	return "a " + kind
}

// quoted is a text for a message, of a long one the beginning.
func quoted(text string) string { return strconv.Quote(runes.Brief(text, 80)) }

// shownValue is a value for a message.
func shownValue(value any) string {
	if text, ok := value.(string); ok {
		return quoted(text)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return runes.Brief(string(b), 80)
}
