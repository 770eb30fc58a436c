package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// masked has what looks like a secret left out of a result, if that is asked for, and says so in it. Of pictures nothing is left out.
func (s *Server) masked(res *mcp.CallToolResult) *mcp.CallToolResult {
	if s.opts.Mask == nil || res == nil || len(res.Content) == 0 {
		return res
	}
	var names []string
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			text.Text = s.mask(text.Text, &names)
		}
	}
	if fields, ok := res.StructuredContent.(json.RawMessage); ok {
		var value any
		d := json.NewDecoder(bytes.NewReader(fields))
		d.UseNumber()
		if d.Decode(&value) == nil { // It was encoded just now.
			value = s.maskIn(value, &names)
			if b, err := json.Marshal(value); err == nil && len(names) > 0 {
				res.StructuredContent = json.RawMessage(b)
			}
		}
	}
	if text, ok := res.Content[0].(*mcp.TextContent); ok && len(names) > 0 { // Some hosts show a model no other.
		text.Text = strings.TrimSuffix(text.Text, "\n") + "\n[limpet left out of this answer what looks like a secret: " + strings.Join(names, ", ") + "]"
	}
	return res
}

// mask masks a text, and adds the names of what was masked.
func (s *Server) mask(text string, names *[]string) string {
	if s.opts.Mask == nil {
		return text
	}
	masked, found := s.opts.Mask([]byte(text))
	for _, name := range found {
		if !slices.Contains(*names, name) {
			*names = append(*names, name)
		}
	}
	return string(masked)
}

// maskIn masks all texts in a JSON value.
func (s *Server) maskIn(value any, names *[]string) any {
	switch v := value.(type) {
	case string:
		return s.mask(v, names)
	case []any:
		for i := range v {
			v[i] = s.maskIn(v[i], names)
		}
	case map[string]any:
		for key := range v {
			v[key] = s.maskIn(v[key], names)
		}
	}
	return value
}
