package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemasOf makes the schemas of a tool from its types. A field's description is in its tag
// "jsonschema", the values that it can have in "enum", separated by commas, and its bounds
// in "min" and "max".
func schemasOf[In, Out any]() schemas {
	in, out := schemaOf[In](), schemaOf[Out]()
	resolved, err := in.Resolve(nil)
	if err != nil {
		panic(err) // A mistake in this package, which every test meets.
	}
	return schemas{in, out, resolved}
}

func schemaOf[T any]() *jsonschema.Schema {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // As above.
	}
	constrain(schema, reflect.TypeFor[T]())
	return schema
}

// constrain adds what the tags of a struct say, and takes "null" out: what is optional is
// left out.
func constrain(schema *jsonschema.Schema, t reflect.Type) {
	if len(schema.Types) == 2 && schema.Types[0] == "null" {
		schema.Type, schema.Types = schema.Types[1], nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		constrain(schema, t.Elem())
	case reflect.Slice:
		if schema.Items != nil {
			constrain(schema.Items, t.Elem())
		}
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := schema.Properties[name]
			if property == nil {
				continue
			}
			constrain(property, field.Type)
			if values := field.Tag.Get("enum"); values != "" {
				for value := range strings.SplitSeq(values, ",") {
					property.Enum = append(property.Enum, value)
				}
			}
			property.Minimum, property.Maximum = number(field.Tag.Get("min")), number(field.Tag.Get("max"))
		}
	}
}

func number(text string) *float64 {
	if text == "" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err) // As above.
	}
	return &f
}

// decode checks the arguments of a call and decodes them into in. Errors are of the
// protocol, and name the argument and the remedy.
func (s schemas) decode(arguments json.RawMessage, in any) error {
	given := make(map[string]any)
	if len(bytes.TrimSpace(arguments)) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return badArgument("the arguments are no JSON object: %v", err)
		}
	}
	for name, value := range given {
		switch property := s.in.Properties[name]; {
		case property == nil:
			return s.unknown(name)
		case value == nil:
			delete(given, name) // Some clients send null for what was left out.
		case !isOf(property.Type, value):
			return badArgument("%q must be %s, and is %s", name, article(property.Type), article(typeOf(value)))
		}
	}
	for _, name := range s.in.Required {
		if _, ok := given[name]; !ok {
			return badArgument("%q is missing: %s", name, s.in.Properties[name].Description)
		}
	}
	for _, name := range s.in.PropertyOrder {
		if err := s.bounded(name, given[name]); err != nil {
			return err
		}
	}
	if err := s.resolved.Validate(given); err != nil {
		return badArgument("the arguments do not fit the schema: %v", err)
	}
	checked, err := json.Marshal(given)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(checked, in); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return badArgument("%q cannot be %s", e.Field, e.Value)
		}
		return badArgument("the arguments: %v", err)
	}
	return nil
}

// bounded checks what tags say of an argument.
func (s schemas) bounded(name string, value any) error {
	property := s.in.Properties[name]
	if value == nil {
		return nil
	}
	if len(property.Enum) > 0 && !slices.Contains(property.Enum, value) {
		var values []string
		for _, v := range property.Enum {
			values = append(values, fmt.Sprintf("%q", v))
		}
		return badArgument("%q is %q, and must be one of %s", name, value, strings.Join(values, ", "))
	}
	n, ok := value.(float64)
	if !ok {
		return nil
	}
	if low := property.Minimum; low != nil && n < *low {
		return badArgument("%q is %v, and must be %v or more", name, n, *low)
	}
	if high := property.Maximum; high != nil && n > *high {
		return badArgument("%q is %v, and must be %v or less", name, n, *high)
	}
	return nil
}

// unknown says that there is no such argument, and which one may be meant.
func (s schemas) unknown(name string) error {
	names := s.in.PropertyOrder
	if len(names) == 0 {
		return badArgument("there is no argument %q: this tool has none", name)
	}
	like := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(unlikeness(a, name), unlikeness(b, name)) })
	hint := "."
	if unlikeness(like, name) < unlike {
		hint = fmt.Sprintf("; did you mean %q?", like)
	}
	return badArgument("there is no argument %q%s There are: %s", name, hint, strings.Join(names, ", "))
}

const unlike = 3

// unlikeness is how little a name is like the one that was given: from 0, where that is its
// beginning, over an abbreviation and a few typing errors, to unlike.
func unlikeness(name, given string) int {
	switch {
	case strings.HasPrefix(name, given):
		return 0
	case abbreviates(given, name), distance(name, given) <= 2:
		return 1
	case strings.Contains(name, given), strings.Contains(given, name):
		return 2
	}
	return unlike
}

// abbreviates reports whether short has some of the characters of a name, in their order,
// with the first of them.
func abbreviates(short, name string) bool {
	if short == "" || name == "" || short[0] != name[0] {
		return false
	}
	for i := range len(name) {
		if short != "" && short[0] == name[i] {
			short = short[1:]
		}
	}
	return short == ""
}

// distance is how many characters are to be changed, added or removed to make one of the
// other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			next := min(row[j+1]+1, row[j]+1, diagonal+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
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
