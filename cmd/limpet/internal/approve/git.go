package approve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/approval"
)

// gitPatience bounds what git is asked.
const gitPatience = 3 * time.Second

// Git returns how git is set up in a directory, for approval.Options, by a git that has an environment; nil is that of limpet. What it is asked runs
// nothing: its own configuration is read by no verb that goes by it. A git that is not trusted is not asked.
func Git(env []string) func(dir string, worktree bool) (approval.Git, error) {
	return func(dir string, worktree bool) (set approval.Git, err error) {
		git, err := trusted(env, "git")
		if err != nil {
			return set, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), gitPatience)
		defer cancel()
		ask := func(args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, git, append([]string{"--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"}, args...)...)
			cmd.Dir, cmd.Env = dir, append(env[:len(env):len(env)], "GIT_NO_LAZY_FETCH=1")
			if env == nil {
				cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1")
			}
			return cmd
		}
		out, err := ask("config", "--list", "--includes", "-z").Output()
		if err != nil {
			return set, fmt.Errorf("git config --list: %w", err)
		}
		for entry := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
			name, value, has := strings.Cut(string(entry), "\n")
			if has {
				name += "=" + value
			}
			if name != "" {
				set.Settings = append(set.Settings, name)
			}
		}
		if !worktree {
			return set, nil
		}
		hook, err := ask("rev-parse", "--git-path", "hooks/post-index-change").Output()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return set, nil // There is no repository, and git fails.
		} else if err != nil {
			return set, fmt.Errorf("git rev-parse: %w", err)
		}
		path := strings.TrimSuffix(string(hook), "\n")
		if !filepath.IsAbs(path) {
			path = dir + "/" + path // Behind a symbolic link, ".." in dir is not what it looks like.
		}
		_, missing := os.Lstat(path)
		set.Hooked = !errors.Is(missing, os.ErrNotExist)
		set.Nested, err = nested(ask("ls-files", "--stage", "-z", ":/"))
		return set, err
	}
}

// nested reports whether the index has a link to another repository.
func nested(cmd *exec.Cmd) (found bool, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString(0)
		found = found || strings.HasPrefix(line, "160000 ")
		if err != nil {
			break // Wait says what went wrong.
		}
	}
	err = cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended && !found {
		return false, nil // It is a bare repository, or has an index that git cannot read: the command fails, too.
	}
	return found, err
}
