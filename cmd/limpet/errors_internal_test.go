package main

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// field is an option of the library as its errors name it.
var field = regexp.MustCompile(`(the library's )?\b(Env|FS|Limits|Net|Options|Proc)\.[A-Z]\w*(=\w+)?`)

// Users of the program set flags, not fields of the library. So an error names the flag; where there
// is no flag, it calls the field one of the library.
func TestErrorsNameNoFieldOfTheLibraryWhereThereIsAFlag(t *testing.T) {
	seen := 0
	for _, dir := range []string{"command", "interrupt", "ipc", "jobs", "oneshot", "sandbox", "session", "shell", "terminal", "transport"} {
		for path, text := range literals(t, filepath.Join("..", "..", dir)) {
			if !strings.Contains(text, " ") || !field.MatchString(text) {
				continue // Code, or a name alone.
			}
			seen++
			for who, names := range map[string]*strings.Replacer{"people": flagNames, "agents": agentNames} {
				for _, found := range field.FindAllString(names.Replace(text), -1) {
					assert.True(t, strings.HasPrefix(found, "the library's "), "%s: to %s it says %q", path, who, names.Replace(text))
				}
			}
		}
	}
	assert.NotZero(t, seen)
}

// literals returns the strings in the code of a package, by where they are.
func literals(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		files := gotoken.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == gotoken.STRING {
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				all[files.Position(literal.Pos()).String()] = text
			}
			return true
		})
	}
	return all
}
