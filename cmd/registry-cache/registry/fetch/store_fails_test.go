package fetch

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
)

// immovable is a storage driver that cannot put anything into its place.
type immovable struct{ driver.StorageDriver }

func (immovable) Move(context.Context, string, string) error { return os.ErrPermission }

// A blob that cannot be put into its place is all there, and its upstream is well: that is no error for its clients.
func TestAFailedMoveIsTheStores(t *testing.T) {
	if err := (storage{immovable{}}).Move(t.Context(), "/a", "/b"); !errors.Is(err, errStore) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// opened is a file that says when it is closed.
type opened struct {
	*bytes.Reader
	closed chan struct{}
}

func (o opened) Close() error { close(o.closed); return nil }

// failing is distribution's blobs on a store that fails at their end. Who goes past the store waits until the file is closed.
type failing struct {
	distribution.BlobStore
	file opened
	told bool // clients hear of the beginning before it fails
	left chan bool
}

func (b failing) ServeBlob(ctx context.Context, _ http.ResponseWriter, _ *http.Request, _ digest.Digest) error {
	if f, inFlight := ctx.Value(flightKey{}).(*flight); inFlight {
		f.update(func() {
			if f.file = b.file; b.told {
				f.header, f.size, f.written = http.Header{}, 10, 5
			}
		})
		return ofStore(os.ErrPermission)
	}
	select {
	case <-b.file.closed:
		b.left <- true
	case <-time.After(limit):
		b.left <- false
	}
	return errPast
}

// Whoever is sent a blob past a full store must not keep the part of it that has filled the store.
func TestThePartIsGoneWhileTheRestGoesPastTheStore(t *testing.T) {
	for name, told := range map[string]bool{"nobody has got anything": false, "a client has got a part": true} {
		t.Run(name, func(t *testing.T) {
			group := patientGroup(t)
			group.store = nothing{}
			store := failing{
				file: opened{bytes.NewReader(make([]byte, 5)), make(chan struct{})}, told: told, left: make(chan bool, 1),
			}
			served := &blobs{BlobStore: store, repository: "library/app", group: group, size: 10}
			err := served.ServeBlob(t.Context(), httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), digest.FromString("x"))
			if err != nil {
				t.Error(err)
			}
			if !<-store.left {
				t.Errorf("the file is open after %s", limit)
			}
		})
	}
}

// reset is a client whose stream was reset while a part is being sent.
type reset struct{ sending []byte }

func (r *reset) Write(p []byte) (int, error) {
	r.sending = p
	return 0, os.ErrClosed
}

// What HTTP/2 may still be sending must not be filled with another blob.
func TestAResetClientKeepsItsBuffer(t *testing.T) {
	group := patientGroup(t)
	f := group.newFlight(func() {}, "library/app", 10)
	f.file, f.size, f.written = opened{Reader: bytes.NewReader(make([]byte, 10))}, 10, 10
	var client reset
	if _, err := f.pass(&client, f.look(), 0); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("error %v", err)
	}
	if next, _ := group.buffers.Get().(*buffer); &next[0] == &client.sending[0] {
		t.Error("the next client gets the buffer")
	}
}
