package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/session"
)

// mcpTrue measures what the way through the protocol adds to a command that costs nothing:
// the real program, in a process of its own, and a client in this one.
func (b *bench) mcpTrue() error {
	program, err := b.limpet()
	if err != nil {
		return err
	}
	all, err := b.contestOf("`true`, by MCP", "true", b.usual(60), &limpetSide{}, &sessionSide{},
		&mcpSide{program: program, era: "2025-11-25"}, &mcpSide{program: program, era: "2025-11-25", http: true},
		&mcpSide{program: program, era: "2026-07-28", http: true}, &bashSide{flag: "-c"})
	if err != nil {
		return err
	}
	b.report.compare(all)
	return nil
}

// limpet builds the program.
func (b *bench) limpet() (path string, err error) {
	path = filepath.Join(b.files, "limpet")
	build := exec.CommandContext(b.ctx, "go", "build", "-o", path, "./cmd/limpet")
	build.Dir = ".." // The program's modules are not those of the benchmark.
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building limpet: %w\n%s", err, out)
	}
	return path, nil
}

// sessionSide is a session of the library, which an MCP server runs its commands in.
type sessionSide struct {
	r *session.Registry
	s *session.Session
}

func (s *sessionSide) name() string { return "session.Session" }

func (s *sessionSide) open(b *bench, dir string) (err error) {
	opts := b.shellOptions()
	opts.Dir = dir
	if s.r, err = session.New(&session.Options{Shell: opts}); err != nil {
		return err
	}
	s.s, err = s.r.Open(b.ctx, "bench", nil)
	return err
}

func (s *sessionSide) run(ctx context.Context, script string) (output, error) {
	return outputOf(s.s.Run(ctx, script))
}

func (s *sessionSide) close() error { return s.r.Close() }

// mcpSide is limpet mcp, asked by the client of the Go SDK.
type mcpSide struct {
	program, era string
	http         bool
	server       *exec.Cmd // with http; else the client's
	client       *mcp.ClientSession
}

func (s *mcpSide) name() string {
	if s.http {
		return "limpet mcp --http, " + s.era
	}
	return "limpet mcp, stdio"
}

func (s *mcpSide) open(b *bench, dir string) error {
	cmd := exec.Command(s.program, "mcp", "--structured", "--dir", dir, "--runtime-dir", b.files)
	cmd.Env = b.env
	var transport mcp.Transport = &mcp.CommandTransport{Command: cmd}
	if s.http {
		var err error
		if transport, err = s.serve(b, cmd); err != nil {
			return err
		}
	}
	var err error
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s.client, err = client.Connect(b.ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: s.era})
	return err
}

// serve starts the server, and returns how to reach it.
func (s *mcpSide) serve(b *bench, cmd *exec.Cmd) (mcp.Transport, error) {
	const token = "a-token-for-the-benchmark"
	cmd.Args = append(cmd.Args, "--http", "0")
	cmd.Env = append(b.env[:len(b.env):len(b.env)], "LIMPET_MCP_TOKEN="+token)
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.server = cmd
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%q said no address: %w", cmd.Args, err)
	}
	url := regexp.MustCompile(`http://[^ ,]+`).FindString(line)
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}, nil
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(req)
}

func (s *mcpSide) run(ctx context.Context, script string) (output, error) {
	res, err := s.client.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": script}})
	if err != nil {
		return output{}, err
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return output{}, err
	}
	var out struct {
		ExitCode    int    `json:"exit_code"`
		Stdout      string `json:"stdout"`
		StdoutBytes int64  `json:"stdout_bytes"`
	}
	if err := json.Unmarshal(b, &out); err != nil || res.IsError {
		return output{}, fmt.Errorf("%s: %w", b, errors.Join(err, errors.New("no result")))
	}
	return output{out.ExitCode, []byte(out.Stdout), out.StdoutBytes}, nil
}

func (s *mcpSide) close() error {
	var err error
	if s.client != nil {
		err = s.client.Close()
	}
	if s.server == nil {
		return err
	}
	_ = s.server.Process.Signal(syscall.SIGTERM) // It may have ended.
	kill := time.AfterFunc(10*time.Second, func() { _ = s.server.Process.Kill() })
	defer kill.Stop()
	_ = s.server.Wait() // By the signal.
	return err
}
