package mcpserver

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemas are what is known of the arguments of a tool.
type schemas struct {
	in        *jsonschema.Schema // what clients see
	hidden    map[string]*jsonschema.Schema
	spellings map[string][]alias // of an argument, its own name first
}

// schemasOf makes them from a struct. A field with the tag "hidden" is understood and not
// shown. A call that sets it needs no other argument.
func schemasOf[In any]() schemas {
	s := schemas{schemaOf[In](), make(map[string]*jsonschema.Schema), make(map[string][]alias)}
	if s.in.Properties == nil {
		s.in.Properties = make(map[string]*jsonschema.Schema) // OpenAI refuses all tools if one has none.
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		if name := nameOf(field); field.Tag.Get("hidden") != "" {
			s.hidden[name] = s.in.Properties[name]
			delete(s.in.Properties, name)
			s.in.PropertyOrder = slices.DeleteFunc(s.in.PropertyOrder, func(n string) bool { return n == name })
		}
	}
	s.spell()
	return s
}

// nameOf is what a field is called in JSON.
func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// schemaOf makes a schema from a type. A field's description is in its tag "jsonschema",
// the values that it can have in "enum", separated by commas, and its bounds in "min" and
// "max".
func schemaOf[T any]() *jsonschema.Schema {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // A mistake in this package, which every test meets.
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
		// Some hosts check arguments by the schema, and say no name of what they refuse. What is
		// not known is refused here, with a call that is right.
		schema.AdditionalProperties = nil
		for _, field := range reflect.VisibleFields(t) {
			property := schema.Properties[nameOf(field)]
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
