package fieldbugs

import "testing"

// TestContainerdRestarts has errors of crictl as seen on nodes. Only those of a containerd that
// restarts do not count as failed pulls.
func TestContainerdRestarts(t *testing.T) {
	for text, restarts := range map[string]bool{
		`dial unix /run/containerd/containerd.sock: connect: connection refused`:                                         true,
		`pulling image: rpc error: code = Unavailable desc = error reading from server: EOF`:                             true,
		`rpc error: code = Unavailable desc = server is not initialized yet: unavailable`:                                true,
		`rpc error: code = NotFound desc = failed to pull and unpack image "alpha.upstream.test/a:b": not found`:         false,
		`rpc error: code = Unknown desc = failed to copy: httpReadSeeker: failed open: unexpected status code 502`:       false,
		`rpc error: code = Unknown desc = failed to do request: Head "http://10.96.0.5:5000/v2/": dial tcp: i/o timeout`: false,
		`rpc error: code = Unknown desc = failed to copy: unexpected EOF`:                                                false,
	} {
		if got := containerdRestarts.MatchString(text); got != restarts {
			t.Errorf("%s: %t, want %t", text, got, restarts)
		}
	}
}
