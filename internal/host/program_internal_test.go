package host

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
)

func TestAProgramIsForItsSystemAndOfThisVersion(t *testing.T) {
	built := func(path, module, version, system, arch string) *debug.BuildInfo {
		return &debug.BuildInfo{
			Path: path, Main: debug.Module{Path: module, Version: version},
			Settings: []debug.BuildSetting{{Key: "GOOS", Value: system}, {Key: "GOARCH", Value: arch}},
		}
	}
	limpet, part := keeper.Module+"/cmd/limpet", keeper.Module+"/cmd/limpet-connect"
	other := built("example.com/tool", "example.com/tool", "v9.0.0", "linux", "arm64")
	with := built("example.com/tool", "example.com/tool", "v9.0.0", "linux", "arm64")
	with.Deps = []*debug.Module{{Path: keeper.Module, Version: "v1.2.3"}}
	for name, c := range map[string]struct {
		info  *debug.BuildInfo
		here  string
		whole bool
		why   string
	}{
		"limpet":                             {info: built(limpet, keeper.Module, "v1.2.3", "linux", "arm64")},
		"a part of it":                       {info: built(part, keeper.Module, "v1.2.3", "linux", "arm64")},
		"a program that has it":              {info: with},
		"limpet as a whole":                  {info: built(limpet, keeper.Module, "v1.2.3", "linux", "arm64"), whole: true},
		"a part where a whole is needed":     {info: built(part, keeper.Module, "v1.2.3", "linux", "arm64"), whole: true, why: "limpet as a whole is needed"},
		"a program where limpet is needed":   {info: with, whole: true, why: "limpet as a whole is needed"},
		"an older one":                       {info: built(part, keeper.Module, "v1.2.2", "linux", "arm64"), why: "it is of limpet v1.2.2, and this is v1.2.3: build it anew"},
		"one without a version":              {info: built(part, keeper.Module, "(devel)", "linux", "arm64")},
		"one where Go says nothing":          {info: built(part, keeper.Module, "", "linux", "arm64")},
		"this one is without a version":      {info: built(part, keeper.Module, "v1.2.2", "linux", "arm64"), here: keeper.Unversioned},
		"for another processor":              {info: built(part, keeper.Module, "v1.2.3", "linux", "amd64"), why: "it is for linux/amd64"},
		"for another system":                 {info: built(part, keeper.Module, "v1.2.3", "darwin", "arm64"), why: "it is for darwin/arm64"},
		"a program that has no limpet in it": {info: other, why: "example.com/tool, which has no limpet in it"},
	} {
		t.Run(name, func(t *testing.T) {
			want := wanted{system: "linux", arch: "arm64", version: "v1.2.3", whole: c.whole}
			if c.here != "" {
				want.version = c.here
			}
			err := want.check(c.info)
			if c.why == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.why)
		})
	}
}

// A file of another user in a directory that all can write to must not be executed on the user's machines.
func TestAProgramIsOfThisUserOrRootAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "limpet-linux-arm64")
	check := func() error {
		_, err := fitting(file, wanted{system: "linux", arch: "arm64"})
		return err
	}
	require.ErrorIs(t, check(), os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
	require.ErrorContains(t, check(), "it is not a program that Go has built")
	require.NoError(t, os.Chmod(file, 0o757))
	require.ErrorContains(t, check(), "others can write to it: chmod o-w limpet-linux-arm64")
	require.NoError(t, os.Chmod(file, 0o755))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(file, 12345, -1))
		require.ErrorContains(t, check(), "it belongs to another user")
	}
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	require.ErrorContains(t, check(), "it is not a regular file")
	require.NoError(t, os.Remove(file))
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	require.ErrorContains(t, check(), "it is not a regular file")
}

// A file is hashed anew when it is another one.
func TestAProgramThatWasReplacedHasAnotherHash(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	hashes := make(map[string]bool)
	for _, text := range []string{"one", "two and more", "one"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
		for range 2 {
			p, err := readProgram(file)
			require.NoError(t, err)
			assert.EqualValues(t, len(text), p.size)
			hashes[p.hash] = true
		}
	}
	assert.Len(t, hashes, 2)
}
