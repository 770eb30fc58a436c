package limpet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

const module = "github.com/limpet-sh/limpet"

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir                  string
	GoFiles, IgnoredGoFiles, Imports []string
}

func (p pkg) name() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// modules are the directories of the Go modules in this repository: the library, and the benchmark, the tools of the tests, and
// the tests by a browser, whose dependencies shall not be the library's.
var modules = []string{".", "bench", "internal/tools", "internal/page/browser"}

// packages returns those of all modules.
func packages(t *testing.T) []pkg {
	t.Helper()
	var all []pkg
	for _, dir := range modules {
		out, err := exec.Command("go", "-C", dir, "list", "-json", "./...").Output()
		require.NoError(t, err)
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			err := dec.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			all = append(all, p)
		}
	}
	return all
}

// goMod is what go mod edit -json prints of a go.mod.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
}

func readGoMod(t *testing.T, dir string) (mod goMod) {
	t.Helper()
	out, err := exec.Command("go", "-C", dir, "mod", "edit", "-json").Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &mod))
	return mod
}

// A module with other versions would measure or test another library, and compile it once more.
func TestTheModulesBesideTheLibraryHaveItsVersions(t *testing.T) {
	library := readGoMod(t, ".")
	assert.Empty(t, library.Replace, "go.mod: a replacement does not hold for those who require the library")
	versions := make(map[string]string)
	for _, one := range library.Require {
		versions[one.Path] = one.Version
		assert.NotEqual(t, "gonum.org/v1/plot", one.Path, "only the benchmark draws plots")
		assert.NotEqual(t, "github.com/chromedp/chromedp", one.Path, "only the tests of the page start a browser")
	}
	for _, dir := range []string{"bench", "internal/page/browser"} {
		beside := readGoMod(t, dir)
		assert.Equal(t, library.Go, beside.Go, dir)
		for _, one := range beside.Require {
			if version, shared := versions[one.Path]; shared {
				assert.Equal(t, version, one.Version, "%s in %s/go.mod", one.Path, dir)
			}
		}
	}
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// within reports whether the path is one of the given, or below one.
func within(path string, of ...string) bool {
	return slices.ContainsFunc(of, func(one string) bool {
		return path == one || strings.HasPrefix(path, one+"/")
	})
}

func ours(names ...string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = module + "/" + name
	}
	return paths
}

func TestImportsPointDownOnly(t *testing.T) {
	testenv.Slow(t)
	rules := []struct {
		pkg    string   // and what is below it; empty: every package
		except []string // packages below it
		only   []string // besides the standard library and its own; nil: anything that is not in never
		never  []string
		reason string
	}{
		{pkg: "command", only: []string{},
			reason: "everybody shares these types: whoever imports them must get nothing else"},
		{pkg: "ipc", only: append(ours("internal"), "golang.org/x/sys"),
			reason: "the file protocol knows neither shells nor transports, so that both can be changed"},
		{pkg: "interrupt", never: ours("shell", "oneshot", "ipc", "transport", "session", "jobs"),
			reason: "it stops whatever is a Target: those who run commands depend on it"},
		{pkg: "transport", except: []string{"transport/transporttest"}, never: ours("shell", "oneshot", "session", "ipc"),
			reason: "a transport starts a process and knows nothing of what is spoken to it; its conformance suite may try it with a shell"},
		{pkg: "shell", never: ours("sandbox", "approval", "session", "jobs", "mcpserver"),
			reason: "a policy enters as a func, a sandbox as a wrapped Transport: a shell must not choose them"},
		{pkg: "oneshot", never: ours("shell", "sandbox", "approval", "session", "jobs", "mcpserver"),
			reason: "the shell is built on it, and policies enter from above"},
		{pkg: "jobs", never: ours("shell", "oneshot", "ipc", "sandbox", "approval", "session", "terminal", "mcpserver"),
			reason: "jobs run by any transport; a shell hands its command over as a value, and policies enter from above"},
		{pkg: "terminal", except: []string{"terminal/screen", "terminal/keys", "terminal/picture"}, never: ours("shell", "oneshot", "sandbox", "approval", "session", "jobs", "mcpserver"),
			reason: "terminals run by any transport, and policies enter from above"},
		{pkg: "kept", only: ours("session", "shell", "internal/keeper", "internal/testenv", "session/sessiontest"),
			reason: "it is the way to a keeper, and does nothing by itself"},
		{pkg: "remote", only: ours("session", "internal/host", "internal/keeper", "internal/testenv"),
			reason: "it is the way to another machine, and does nothing by itself"},
		{pkg: "terminal/screen", only: append(ours("internal"), "github.com/clipperhouse/displaywidth"),
			reason: "what is on a screen has nothing to do with who prints it"},
		{pkg: "terminal/picture", only: append(ours("terminal/screen"), "golang.org/x/image", "codeberg.org/go-fonts"),
			reason: "it draws a screen, and nothing else needs the fonts"},
		{pkg: "terminal/keys", only: []string{},
			reason: "what keys send has nothing to do with who gets it"},
		{pkg: "terminal/remote", only: ours("terminal", "internal/socket", "internal/jsonhttp", "internal/errtext"),
			reason: "it passes on what a terminal can do, and what its errors say; it needs nothing besides"},
		{pkg: "approval", only: append(ours("internal/lazyregexp", "internal/script", "command"), "mvdan.cc/sh/v3"),
			reason: "it reads a script and runs nothing, so that it can be asked anywhere"},
		{pkg: "sandbox", never: ours("shell", "oneshot", "ipc", "session", "jobs", "mcpserver"),
			reason: "it wraps a transport, and knows nothing of what runs in it; its tests may try it with a shell"},
		{pkg: "session", never: append(ours("mcpserver", "approval"), "github.com/modelcontextprotocol/go-sdk"),
			reason: "sessions are for any program, with and without a protocol"},
		{pkg: "internal", except: []string{"internal/conformance", "internal/testenv", "internal/wire", "internal/keeper", "internal/connect", "internal/host", "internal/page", "internal/audit"}, never: ours("shell", "oneshot", "ipc", "transport", "sandbox", "session"),
			reason: "small parts are used by the packages above them"},
		{pkg: "internal/page", only: append(ours("internal", "session", "jobs", "terminal"), "github.com/coder/websocket"),
			reason: "it shows what there is, and can start nothing, nor change anything but by what is typed into a terminal, what is answered, and which jobs are stopped"},
		{except: []string{"cmd", "bench"}, never: ours("mcpserver"),
			reason: "the protocol is on top: only the program knows of it"},
		{except: []string{"cmd", "mcpserver", "bench"}, never: []string{"github.com/modelcontextprotocol/go-sdk", "github.com/google/jsonschema-go"},
			reason: "the protocol is in one place"},
		{except: []string{"cmd"}, never: ours("cmd"),
			reason: "a program is the end of the line"},
	}
	for _, p := range packages(t) {
		name := p.name()
		for _, rule := range rules {
			if rule.pkg != "" && !within(name, rule.pkg) || within(name, rule.except...) {
				continue
			}
			for _, path := range p.Imports {
				if standard(path) {
					continue
				}
				allowed := rule.only == nil || within(path, module+"/"+rule.pkg) || within(path, rule.only...)
				assert.True(t, allowed && !within(path, rule.never...), "%s imports %s: %s", name, path, rule.reason)
			}
		}
	}
}

// The program that limpet brings to other machines must stay small, and each of these packages is large.
func TestTheProgramThatIsBroughtHasOnlyTheFarSide(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/limpet-connect").Output()
	require.NoError(t, err)
	large := append(ours("mcpserver", "internal/host", "internal/page", "terminal/picture", "cmd/limpet"),
		"codeberg.org/go-fonts", "golang.org/x/image", "github.com/spf13/cobra", "github.com/modelcontextprotocol/go-sdk", "github.com/coder/websocket")
	for path := range strings.FieldsSeq(string(out)) {
		assert.False(t, within(path, large...), "it has %s", path)
	}
}

func TestEveryPackageHasExactlyOnePackageComment(t *testing.T) {
	testenv.Slow(t)
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue // Tests alone.
		}
		var commented []string
		for _, file := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.PackageClauseOnly|parser.ParseComments)
			require.NoError(t, err)
			if f.Doc.Text() != "" {
				commented = append(commented, file)
			}
		}
		assert.Len(t, commented, 1, "%s: %v", p.ImportPath, commented)
	}
}

// longestFile is in lines. A file that is longer tells more than one story.
const longestFile = 450

func TestNoFileIsTooLong(t *testing.T) {
	testenv.Slow(t)
	for _, p := range packages(t) {
		for _, file := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			b, err := os.ReadFile(filepath.Join(p.Dir, file))
			require.NoError(t, err)
			assert.LessOrEqual(t, bytes.Count(b, []byte("\n")), longestFile, "%s/%s", p.name(), file)
		}
	}
}

// makers are what makes files and directories under the umask: functions of these packages, and methods of an os.Root in a variable or
// field that is called root. One of another name is not seen.
var (
	makers  = []string{"Create", "CreateTemp", "Mkdir", "MkdirAll", "MkdirTemp", "Mkdirat", "Mkfifo", "Mkfifoat", "Mknod", "Mknodat", "WriteFile", "CopyFS", "SetPermissions"}
	makerOf = []string{"os", "syscall", "unix", "flock", "root"}
)

// underUmask are the functions that may use makers, and OpenFile with a mode.
var underUmask = map[string]string{
	"sandbox.makeCgroup":    "it gives the directory its mode",
	"sandbox.mountPointDir": "it gives the directory its mode, and follows no link",
	"cmd/limpet.print":      "the picture is the user's file, which has the mode that the user's files have",
}

// Under a umask as 777 limpet could not open again what it has made: see package private.
func TestWhatIsMadeDoesNotDependOnTheUmask(t *testing.T) {
	testenv.Slow(t)
	used := make(map[string]bool)
	for _, p := range packages(t) {
		tests := []string{"bench", "internal/tools", "internal/page/browser", "internal/testenv", "internal/conformance", "transport/transporttest", "session/sessiontest"}
		if name := p.name(); name == "internal/private" || within(name, tests...) || strings.HasPrefix(p.ImportPath, module+"/bench") {
			continue
		}
		for _, file := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, decl := range f.Decls {
				name := p.name() + "."
				if fn, ok := decl.(*ast.FuncDecl); ok {
					name += fn.Name.Name
				}
				ast.Inspect(decl, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok && makes(call) {
						used[name] = true
						assert.Contains(t, underUmask, name, "%s: make files and directories by package private", file)
					}
					return true
				})
			}
		}
	}
	for name := range underUmask {
		assert.True(t, used[name], "%s makes nothing any more", name)
	}
}

func makes(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if selector.Sel.Name == "OpenFile" && len(call.Args) == 3 {
		mode, ok := call.Args[2].(*ast.BasicLit)
		return !ok || mode.Value != "0"
	}
	of := selector.X
	if field, ok := of.(*ast.SelectorExpr); ok {
		of = field.Sel
	}
	name, ok := of.(*ast.Ident)
	return ok && slices.Contains(makerOf, name.Name) && slices.Contains(makers, selector.Sel.Name)
}
