package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const sound = "what a layer has in it"

var (
	soundDigest = digest.FromString(sound)
	soundFile   = blobsFolder + "sha256/" + soundDigest.Encoded()[:2] + "/" + soundDigest.Encoded() + "/data"
)

// disk is a storage driver whose reads are counted and can hang or fail, and that may refuse to delete.
type disk struct {
	driver.StorageDriver
	reads                        atomic.Int32
	openFails, readFails, locked error
	hang                         chan struct{}
	old                          string // what a reader still reads of a file that was replaced
}

func (d *disk) Reader(ctx context.Context, file string, offset int64) (io.ReadCloser, error) {
	d.reads.Add(1)
	if d.hang != nil {
		<-d.hang
	}
	if d.openFails != nil {
		return nil, d.openFails
	}
	if d.readFails != nil {
		return io.NopCloser(io.MultiReader(strings.NewReader(sound[:3]), &failing{d.readFails})), nil //nolint:nilerr // reading fails, not opening
	}
	if d.old != "" {
		return io.NopCloser(strings.NewReader(d.old)), nil
	}
	return d.StorageDriver.Reader(ctx, file, offset)
}

func (d *disk) Delete(ctx context.Context, folder string) error {
	if d.locked != nil {
		return d.locked
	}
	return d.StorageDriver.Delete(ctx, folder)
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// put writes a file and lets a moment pass, so that the next one has another time.
func (d *disk) put(t *testing.T, file, content string) {
	t.Helper()
	if err := d.PutContent(t.Context(), file, []byte(content)); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
}

// ofRequest is the context of one, as distribution makes it.
type ofRequest struct{ context.Context }

func (r ofRequest) Value(key any) any {
	if key == "http.request" {
		return http.NoBody
	}
	return r.Context.Value(key)
}

// has says whether the store has the file for a client.
func has(t *testing.T, store driver.StorageDriver, file string) bool {
	t.Helper()
	return hasFor(ofRequest{t.Context()}, t, store, file)
}

func hasFor(ctx context.Context, t *testing.T, store driver.StorageDriver, file string) bool {
	t.Helper()
	info, err := store.Stat(ctx, file)
	if err == nil {
		return info.Path() == file
	}
	if !errors.As(err, &driver.PathNotFoundError{}) {
		t.Fatalf("the error of what is not there is %T: %v", err, err)
	}
	return false
}

func newDisk() *disk { return &disk{StorageDriver: inmemory.New()} }

func TestSoundStore(t *testing.T) {
	sha512 := digest.SHA512.FromString(sound)
	for name, test := range map[string]struct {
		file, content string
		disk          *disk
		// there says whether it is for a client, kept whether it is on the disk afterwards, counted whether as damaged.
		there, kept, counted bool
	}{
		"sound":            {soundFile, sound, &disk{}, true, true, false},
		"sound, SHA-512":   {blobsFolder + "sha512/" + sha512.Encoded()[:2] + "/" + sha512.Encoded() + "/data", sound, &disk{}, true, true, false},
		"cut":              {soundFile, sound[:10], &disk{}, false, false, true},
		"empty":            {soundFile, "", &disk{}, false, false, true},
		"longer":           {soundFile, sound + "!", &disk{}, false, false, true},
		"other bytes":      {soundFile, strings.Replace(sound, "a", "b", 1), &disk{}, false, false, true},
		"a broken disk":    {soundFile, sound, &disk{readFails: errors.New("input/output error")}, false, true, false},
		"a read-only disk": {soundFile, sound[:10], &disk{locked: errors.New("read-only file system")}, false, true, true},
		"no open files":    {soundFile, sound[:10], &disk{openFails: errors.New("too many open files")}, true, true, false},
		"an upload":        {"/docker/registry/v2/repositories/app/_uploads/x/data", sound[:10], &disk{}, true, true, false},
		"no digest":        {blobsFolder + "sha256/ab/abc/data", sound, &disk{}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := test.disk
				d.StorageDriver = inmemory.New()
				d.put(t, test.file, test.content)
				store, before := newSoundStore(d), damaged(t)
				for _, pause := range []time.Duration{0, time.Second, checkLasts, time.Second} {
					<-time.After(pause)
					if there := has(t, store, test.file); there != test.there {
						t.Fatalf("there for a client: %t", there)
					}
				}
				synctest.Wait()
				if kept := has(t, d.StorageDriver, test.file); kept != test.kept {
					t.Errorf("on the disk: %t", kept)
				}
				if counted := damaged(t) != before; counted != test.counted {
					t.Errorf("counted as damaged: %t", counted)
				}
			})
		})
	}
}

// damaged is what the metrics count.
func damaged(t *testing.T) string {
	t.Helper()
	metrics := httptest.NewRecorder()
	promhttp.Handler().ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	match := regexp.MustCompile(`(?m)^registry_storage_damaged_blobs_total (\d+)$`).FindStringSubmatch(metrics.Body.String())
	if match == nil {
		t.Fatalf("damaged blobs are not counted:\n%s", metrics.Body)
	}
	return match[1]
}

// A blob is read when it must be, and not for each request.
func TestSoundStoreReads(t *testing.T) {
	const upload = "/docker/registry/v2/repositories/app/_uploads/x/data"
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		store := newSoundStore(d)
		d.put(t, soundFile, sound)
		for _, step := range []struct {
			what  string
			do    func() error
			reads int32
		}{
			{"after the start", func() error { return nil }, 1},
			{"again", func() error { return nil }, 1},
			{"written anew", func() error { return store.PutContent(t.Context(), soundFile, []byte(sound)) }, 2},
			{"a day later", func() error { <-time.After(checkLasts); return nil }, 3},
			{"deleted and fetched", func() error {
				d.put(t, upload, sound)
				return errors.Join(store.Delete(t.Context(), soundFile[:len(soundFile)-len("/data")]), store.Move(t.Context(), upload, soundFile))
			}, 3},
		} {
			<-time.After(time.Second)
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			there := has(t, store, soundFile)
			synctest.Wait()
			if !there || d.reads.Load() != step.reads {
				t.Errorf("%s: read %d times, want %d", step.what, d.reads.Load(), step.reads)
			}
		}
		if len(store.checks) != 1 {
			t.Errorf("%d checks are remembered", len(store.checks))
		}
		if err := store.Delete(t.Context(), soundFile[:len(soundFile)-len("/data")]); err != nil || len(store.checks) != 0 {
			t.Errorf("%d checks are remembered of a blob whose time is up, %v", len(store.checks), err)
		}
	})
}

// Nobody waits long for the check of a big blob. It is removed when the check has ended.
func TestSoundStoreIsPatientOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.put(t, soundFile, sound[:10])
		d.hang = make(chan struct{})
		store, start := newSoundStore(d), time.Now()
		for range 4 { // as often as distribution asks in one request
			if !has(t, store, soundFile) {
				t.Fatal("a blob that is being checked is not there")
			}
		}
		if took := time.Since(start); took != checkPatience || d.reads.Load() != 1 {
			t.Errorf("four questions took %s and %d reads, want %s and one", took, d.reads.Load(), checkPatience)
		}
		close(d.hang)
		synctest.Wait()
		if has(t, d, soundFile) {
			t.Error("a damaged blob is left on the disk")
		}
	})
}

// Big blobs are read two at a time, and small ones do not wait for them. Nobody reads what distribution deletes.
func TestSoundStoreInAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := digest.FromString("big")
		bigFile := blobsFolder + "sha256/" + big.Encoded()[:2] + "/" + big.Encoded() + "/data"
		d := newDisk()
		d.put(t, soundFile, sound[:10])
		d.put(t, bigFile, strings.Repeat("x", smallBlob+1))
		store := newSoundStore(d)
		for range cap(store.slots) {
			store.slots <- struct{}{}
		}
		if !hasFor(t.Context(), t, store, soundFile) || d.reads.Load() != 0 {
			t.Error("a blob is read although no client has asked for it")
		}
		start := time.Now()
		if has(t, store, soundFile) || time.Since(start) != 0 {
			t.Errorf("a small damaged blob is there, or waited %s", time.Since(start))
		}
		if !has(t, store, bigFile) || time.Since(start) != checkPatience {
			t.Errorf("a big blob is not there before it is read, or waited %s", time.Since(start))
		}
		<-store.slots
		synctest.Wait()
		if has(t, d, bigFile) {
			t.Error("a big damaged blob is left on the disk")
		}
	})
}

// What was fetched anew while the damaged file was read stays.
func TestSoundStoreKeepsANewFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.put(t, soundFile, sound[:10])
		d.hang = make(chan struct{})
		d.old = sound[:10]
		store := newSoundStore(d)
		has(t, store, soundFile)
		d.put(t, soundFile, sound)
		close(d.hang)
		synctest.Wait()
		d.old = ""
		if !has(t, store, soundFile) {
			t.Error("the file that was fetched anew was removed")
		}
	})
}

func TestDamagedLinks(t *testing.T) {
	const link = "/docker/registry/v2/repositories/app/_layers/sha256/ab/link"
	for content, there := range map[string]bool{soundDigest.String(): true, "": false, "sha256:12": false, "\x00\x00": false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk()
			d.put(t, link, content)
			got, err := newSoundStore(d).GetContent(t.Context(), link)
			if notFound := errors.As(err, &driver.PathNotFoundError{}); notFound == there || there && !bytes.Equal(got, []byte(content)) {
				t.Errorf("link %q: %q, %v", content, got, err)
			}
		})
	}
}

// A registry that is no cache loses nothing.
func TestSoundStoreIsForCaches(t *testing.T) {
	other := configuration.Middleware{Name: "other"}
	for remote, want := range map[string]int{"": 1, "https://upstream.test": 2} {
		config := &configuration.Configuration{Middleware: map[string][]configuration.Middleware{"storage": {other}}}
		config.Proxy.RemoteURL = remote
		if err := useSoundStore(config); err != nil {
			t.Fatal(err)
		}
		used := config.Middleware["storage"]
		if len(used) != want || used[len(used)-1].Name != other.Name || want > 1 && used[0].Name != soundStoreName {
			t.Errorf("upstream %q: %+v", remote, used)
		}
	}
}
