package fieldbugs

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestQuoting(t *testing.T) {
	for want, args := range map[string][]string{
		"testbed exec worker -- cat /etc/hosts":   {"exec", "worker", "--", "cat", "/etc/hosts"},
		`testbed exec worker -- sh -c 'a "b" $c'`: {"exec", "worker", "--", "sh", "-c", `a "b" $c`},
		`testbed push --name 'it'\''s' ''`:        {"push", "--name", "it's", ""},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := (&script{}).commandLine(args); got != want {
			t.Errorf("page: %s, want %s", got, want)
		}
	}
}

// registry fakes a testbed that accepts pushed images. The argument is part of all names.
func registry(run string) Execute {
	c := &console{}
	hex := strings.Repeat(run, 64)
	return func(ctx context.Context, args []string, out, err io.Writer) int {
		var answer string
		switch {
		case args[0] == "push":
			answer = `{"reference": "alpha.upstream.test/testbed/` + run + `:latest", "digest": "sha256:0` + hex[1:] + `",
				"objects": [{"digest": "sha256:0` + hex[1:] + `"}, {"digest": "sha256:` + hex + `"}]}`
		case slices.Contains(args, "persistentvolume"):
			answer = "/folder/" + run
		case slices.Contains(args, "persistentvolumeclaims"):
			answer = "pvc-" + run
		case slices.Contains(args, "pods"):
			answer = "shoot-worker" + run
		default:
			return c.execute(ctx, args, out, err)
		}
		_, _ = io.WriteString(out, answer)
		return 0
	}
}

// TestCommandsOfThePage checks that the recorded commands can be typed in a shell, and are the same
// after each run.
func TestCommandsOfThePage(t *testing.T) {
	bug := Bug{ID: "s0", Reproduce: func(ctx context.Context, r *Rig) error {
		img, err := r.Push(ctx, "alpha", "--layers", "1")
		if err != nil {
			return err
		}
		volume, err := r.volumeOf(ctx, "alpha")
		if err != nil {
			return err
		}
		repository, _, _ := strings.Cut(img.Reference, ":")
		_, path, _ := strings.Cut(repository, "/")
		file := volume.blob(img.Objects[1])
		for _, args := range [][]string{
			{"pull", img.Reference, "--all", "--json"},
			{"pull", repository + "@" + img.Digest},
			{"push", "--name", path + ":latest"},
			{"exec", volume.node, "--", "sh", "-c", `a="$b"; cat ` + file},
			{"exec", "worker2", "--", "find", "-path", "*/" + img.Objects[1].Digest[7:] + "/data"},
		} {
			if _, err := r.Testbed(ctx, args...); err != nil {
				return err
			}
		}
		if _, err := r.volumeOf(ctx, "alpha"); err != nil { // repeated commands are not recorded
			return err
		}
		tries := 0
		return r.Await(ctx, img.Reference+" comes", restartedBound, func(ctx context.Context) (bool, string, error) {
			_, err := r.Testbed(ctx, "status")
			if err == nil {
				_, err = r.Testbed(ctx, "shoot", "get")
			}
			tries++
			return tries > 1, "", err
		})
	}}
	kube := "testbed kubectl shoot get --namespace=kube-system "
	want := slices.Concat([]string{"testbed shoot apply -f " + TwoCaches}, untilBegun, []string{
		"pushed=$(testbed push --upstream alpha --layers 1 --json)",
		`image=$(jq -r .reference <<<"$pushed")`,
		`digest=$(jq -r .digest <<<"$pushed")`,
		`parts=($(jq -r '.objects[].digest | ltrimstr("sha256:")' <<<"$pushed"))`,
		"node=$(" + kube + "pods --selector=upstream-host=alpha.upstream.test '--output=jsonpath={.items[*].spec.nodeName}')",
		"disk=$(" + kube + "persistentvolumeclaims --selector=upstream-host=alpha.upstream.test '--output=jsonpath={.items[*].spec.volumeName}')",
		"folder=$(" + kube + `persistentvolume "$disk" '--output=jsonpath={.spec.hostPath.path}{.spec.local.path}')`,
		`testbed pull "$image" --all`,
		`testbed pull "${image%:*}@${digest}"`,
		`testbed push --name "${image#*/}"`,
		`testbed exec "$node" -- sh -c "a=\"\$b\"; cat ${folder}/docker/registry/v2/blobs/sha256/${parts[1]:0:2}/${parts[1]}/data"`,
		`testbed exec worker2 -- find -path "*/${parts[1]}/data"`,
		"# until ${image} comes:", "testbed status", "testbed shoot get",
	})
	for _, run := range []string{"1", "7"} {
		var shown []string
		result := Reproduce(t.Context(), bug, registry(run), Options{Transcript: io.Discard, Progress: func(line string) { shown = append(shown, line) }})
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		if !slices.Equal(result.Commands, want) {
			t.Errorf("run %s:\n%s\nwant\n%s", run, strings.Join(result.Commands, "\n"), strings.Join(want, "\n"))
		}
		if len(shown) != len(want)-3 || shown[0] != want[0] || shown[6] != "image=$(testbed push --upstream alpha --layers 1)" {
			t.Errorf("progress: %q", shown)
		}
	}
}

// TestFailedAttempts checks that the script contains the successful attempt but no failed one.
func TestFailedAttempts(t *testing.T) {
	pushes, pulls := 0, 0
	execute := func(_ context.Context, args []string, out, _ io.Writer) int {
		switch args[0] {
		case "push":
			pushes++
			_, _ = io.WriteString(out, `{"reference": "alpha.upstream.test/testbed/`+strings.Repeat("i", pushes)+`:latest", "objects": [{}]}`)
		case "pull":
			pulls++
			_, _ = io.WriteString(out, `{"total": {"pulls": 1, "fallbacks": `+map[bool]string{true: "1", false: "0"}[pulls == 1]+`}}`)
		}
		return 0
	}
	rig := &Rig{execute: execute, transcript: io.Discard, result: &Result{}}
	img, err := rig.newImage(t.Context(), "alpha")
	if err != nil || img.Reference != "alpha.upstream.test/testbed/ii:latest" {
		t.Fatalf("%+v, %v", img, err)
	}
	if _, err := rig.Testbed(t.Context(), "pull", img.Reference); err != nil {
		t.Fatal(err)
	}
	want := []string{"# until alpha's cache serves an image:", "image=$(testbed push --upstream alpha)",
		`testbed pull "$image" --node worker`, `testbed pull "$image"`}
	if got := rig.script.commands(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAskWantsOneWord checks that an answer with no word or with two words is an error.
func TestAskWantsOneWord(t *testing.T) {
	for answer, fine := range map[string]bool{"worker\n": true, "": false, "worker worker2": false} {
		rig := &Rig{transcript: io.Discard, result: &Result{}, execute: func(_ context.Context, _ []string, out, _ io.Writer) int {
			_, _ = io.WriteString(out, answer)
			return 0
		}}
		if _, err := rig.Ask(t.Context(), "node", "status"); (err == nil) != fine {
			t.Errorf("%q: %v", answer, err)
		}
	}
}
