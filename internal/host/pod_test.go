package host_test

import (
	"bytes"
	"encoding/json"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

// kube is the pod that testdata/kubernetes/run has made, in a cluster of its own; else the test is skipped.
func kube(t *testing.T) (target string) {
	t.Helper()
	target = os.Getenv("LIMPET_TEST_KUBE")
	if target == "" {
		t.Skip("no kubernetes")
	}
	return target
}

func kubectlIn(namespace string) func(argv ...string) *exec.Cmd {
	return func(argv ...string) *exec.Cmd {
		return exec.Command("kubectl", append([]string{"-n", namespace}, argv...)...)
	}
}

// kubectlOrConnect returns what signals the kubectl that carries a connection, or the limpet at its end, the same each time. It may be gone.
func (c box) kubectlOrConnect(connect int) func(syscall.Signal) {
	for _, st := range testenv.Children() {
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(st.PID), "cmdline"))
		if bytes.HasPrefix(argv, []byte("kubectl\x00")) && bytes.Contains(argv, []byte("\x00-i\x00")) && mathrand.IntN(2) == 0 {
			return func(sig syscall.Signal) { _ = proc.Signal(st.ID(), sig) } // As said.
		}
	}
	return func(sig syscall.Signal) { _ = c.in("kill", "-"+strconv.Itoa(int(sig)), strconv.Itoa(connect)).Run() }
}

// TestInAPod is run by testdata/kubernetes/run, which makes a cluster for it.
func TestInAPod(t *testing.T) {
	target := kube(t)
	namespace, pod, _ := strings.Cut(strings.TrimPrefix(target, "kube://"), "/")
	kubectl := kubectlIn(namespace)
	c := box{target, func(argv0 string, argv ...string) *exec.Cmd {
		return kubectl(append([]string{"exec", pod, "--", argv0}, argv...)...)
	}, "/tmp"}
	c.keeps(t)
	c.jobsSurviveCuts(t)
	mark := marked(t)
	c.cutAtRandomMoments(t, testenv.Repeats(2, 30, 100), c.kubectlOrConnect)
	testenv.AwaitNone(t, mark, "cut at random moments, and closed") // Here: there the environment is the pod's.
	c.awaitNoLimpet(t)
	c.isNotAnother(t, func() {
		for _, argv := range [][]string{
			{"delete", "pod", pod}, {"apply", "-f", "../../testdata/kubernetes/pod.yaml"}, {"wait", "--for=condition=Ready", "pod/" + pod, "--timeout=1m"},
		} {
			out, err := kubectl(argv...).CombinedOutput()
			require.NoError(t, err, string(out))
		}
	})
	for target, want := range map[string]string{
		"kube://" + namespace + "/no-such-pod":        "is the name right, and the namespace?",
		"kube://no-such-namespace/" + pod:             "is the name right",
		target + "/no-such-container":                 "has the names of its containers",
		"kube://no-such-context/" + namespace + "/p/": "kubectl config get-contexts",
	} {
		assert.ErrorContains(t, failing(t, target, nil), want)
	}
}

// The promises of sessions, each in a pod of its own, which sees the temporary files of this machine: it is the node, too.
func TestInAPodSessionsKeepThePromises(t *testing.T) {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(kube(t), "kube://"), "/")
	kubectl := kubectlIn(namespace)
	sessiontest.Run(t, func(t *testing.T) session.Handle {
		name := "promise-" + strconv.FormatUint(mathrand.Uint64(), 36)
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": 1,
			"containers": []any{map[string]any{
				"name": "shell", "image": "limpet.test/shell:1", "imagePullPolicy": "Never", "volumeMounts": []any{map[string]any{"name": "files", "mountPath": os.TempDir()}},
			}},
			"volumes": []any{map[string]any{"name": "files", "hostPath": map[string]any{"path": os.TempDir()}}},
		}}
		manifest, err := json.Marshal(pod)
		require.NoError(t, err)
		for _, argv := range [][]string{{"apply", "-f", "-"}, {"wait", "--for=condition=Ready", "pod/" + name, "--timeout=1m"}} {
			cmd := kubectl(argv...)
			cmd.Stdin = bytes.NewReader(manifest)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
		}
		t.Cleanup(func() {
			out, err := kubectl("delete", "pod", name, "--wait=false").CombinedOutput()
			require.NoError(t, err, string(out))
		})
		s, err := dial(t, "kube://"+namespace+"/"+name, nil).Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		return s
	})
}
