package logline

import (
	"maps"
	"testing"
	"time"
)

func at(text string) time.Time {
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func TestJournal(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		want       Line
		fields     map[string]string
	}{
		{
			"the script",
			`2026-11-22T00:03:34.105582+0000 worker configure-containerd-registries.sh[20591]: beta.upstream.test: pulls go through http://10.96.1.2:5000`,
			Line{
				Time: at("2026-11-22T00:03:34.105582Z"), Program: "configure-containerd-registries.sh", Level: Info,
				Message: "beta.upstream.test: pulls go through http://10.96.1.2:5000",
			}, nil,
		},
		{
			"containerd",
			`2026-11-22T00:03:10.4+0000 worker containerd[1]: time="2026-11-22T00:03:10.425372310Z" level=error msg="PullImage \"a/b:c\" failed" error="rpc error: \"x\""`,
			Line{Time: at("2026-11-22T00:03:10.4Z"), Program: "containerd", Level: Error, Message: `PullImage "a/b:c" failed`},
			map[string]string{"error": `rpc error: "x"`},
		},
		{
			"gardener-node-agent",
			`2026-11-22T01:03:28.200235+0100 worker gardener-node-agent[2]: {"level":"info","ts":"2026-11-22T00:03:28.200Z","msg":"Applied","n":1}`,
			Line{Time: at("2026-11-22T00:03:28.200235Z"), Program: "gardener-node-agent", Level: Info, Message: "Applied"},
			map[string]string{"n": "1"},
		},
		{
			"kubelet",
			`2026-11-22T00:04:23.802994+0000 worker kubelet[20017]: E1122 00:04:23.802425   20017 remote_runtime.go:569] "It failed" err="not found" containerID="fd97"`,
			Line{Time: at("2026-11-22T00:04:23.802994Z"), Program: "kubelet", Level: Error, Message: "It failed"},
			map[string]string{"err": "not found", "containerID": "fd97"},
		},
		{
			"systemd", `2026-11-22T00:04:23.802994+0000 worker systemd[1]: Started kubelet.service - kubelet.`,
			Line{Time: at("2026-11-22T00:04:23.802994Z"), Program: "systemd", Level: Info, Message: "Started kubelet.service - kubelet."}, nil,
		},
		{
			"the kernel, which has no process ID", `2026-11-22T00:04:23.802994+0000 worker kernel: oom`,
			Line{Time: at("2026-11-22T00:04:23.802994Z"), Program: "kernel", Level: Info, Message: "oom"}, nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := Journal(tc.line + "\n")
			same(t, got, tc.want, tc.fields)
			if !ok {
				t.Error("not recognized as a journal line")
			}
		})
	}
	for _, other := range []string{"-- No entries --", "", "x", "2026-11-22T00:03:34.1+0000 worker", "2026-11-22 worker x: y"} {
		if line, ok := Journal(other); ok {
			t.Errorf("%q is a line: %+v", other, line)
		}
	}
}

func same(t *testing.T, got, want Line, fields map[string]string) {
	t.Helper()
	if !got.Time.Equal(want.Time) || got.Program != want.Program || got.Level != want.Level || got.Message != want.Message {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(fields)+len(got.Fields) > 0 && !maps.Equal(got.Fields, fields) {
		t.Errorf("fields %q, want %q", got.Fields, fields)
	}
}

// TestPayload covers payloads that contain a time, and those in no known format.
func TestPayload(t *testing.T) {
	same(t, Payload(`{"level":"error","ts":1795308203.5,"msg":"no","error":"x"}`),
		Line{Time: at("2026-11-22T00:43:23.5Z"), Level: Error, Message: "no"}, map[string]string{"error": "x"})
	same(t, Payload(`{"half":`), Line{Level: Info, Message: `{"half":`}, nil)
	same(t, Payload(`a="b`), Line{Level: Info, Message: `a="b`}, nil)
	same(t, Payload(`a=b c`), Line{Level: Info, Message: `a=b c`}, nil)
	same(t, Payload(`time=never level=fatal msg=x`), Line{Level: Error, Message: "x"}, nil)
}

func TestText(t *testing.T) {
	line := Line{Message: "m", Fields: map[string]string{"err": "bad", "host": "h", "empty": ""}}
	if got, want := line.Text("error", "empty", "host", "absent"), "m: bad: host=h"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := line.Text(); got != "m" {
		t.Errorf("got %q", got)
	}
}
