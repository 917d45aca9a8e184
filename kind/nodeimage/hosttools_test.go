package nodeimage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestMissingPackages(t *testing.T) {
	there, absent := func() bool { return true }, func() bool { return false }
	tests := []struct {
		name  string
		tools []hostTool
		want  []string
	}{
		{"all there", []hostTool{{"gcc", there}}, nil},
		{"some missing", []hostTool{{"gcc", absent}, {"mmdebstrap", there}, {"pkg-config", absent}}, []string{"gcc", "pkg-config"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := missingPackages(tt.tools); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestInstallPackagesWithoutAptSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := installPackages(t.Context(), []string{"gcc", "mmdebstrap"})
	if err == nil || !strings.Contains(err.Error(), "as root: apt-get install --no-install-recommends gcc mmdebstrap") {
		t.Errorf("got %v", err)
	}
}

func TestRetry(t *testing.T) {
	failure := errors.New("connection reset")
	backoff := wait.Backoff{Steps: 3, Duration: time.Microsecond}
	tests := []struct {
		name     string
		failures int
		canceled bool
		calls    int
		err      error
	}{
		{"at once", 0, false, 1, nil},
		{"second try", 1, false, 2, nil},
		{"never", 9, false, 3, failure},
		{"canceled", 0, true, 0, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.canceled {
				cancel()
			}
			calls := 0
			err := retry(ctx, backoff, "fetching x", func(context.Context) error {
				if calls++; calls <= tt.failures {
					return failure
				}
				return nil
			})
			if calls != tt.calls || !errors.Is(err, tt.err) {
				t.Errorf("%d calls, %v; want %d, %v", calls, err, tt.calls, tt.err)
			}
		})
	}
}
