package registry

import (
	"context"
	"path"
	"strings"
	"sync"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	storagemiddleware "github.com/distribution/distribution/v3/registry/storage/driver/middleware"
	"github.com/opencontainers/go-digest"
	"github.com/sirupsen/logrus"
)

const (
	// soundStoreName is that of the middleware.
	soundStoreName = "soundstore"
	// blobsFolder is where distribution has blobs and manifests: <algorithm>/<first two digits>/<digits>/data below it.
	blobsFolder = "/docker/registry/v2/blobs/"
)

// soundStore is a storage driver that shows clients no blob which it knows to be damaged: whose content is not that of its digest.
// It learns that by reading the file, for which a client waits checkPatience at most: a damaged blob that takes longer, which are
// those of more than about 1 GiB or behind such, is still sent to whoever asks before the end of the check, and not after it.
//
// distribution serves what lies at the path of a digest, whatever it is: its comment in moveBlob leaves the detection of damage to
// others. containerd asks a mirror that has answered 200 again and nobody else (containerd#9552), so an image of which one
// file is cut or empty after a crash could never be pulled again. Whoever asks for a blob asks Stat first, so that is where a
// damaged one is not there: it is fetched anew, with the same request.
//
// A blob is read as a whole when a client asks for it the first time after the start, or after its file changed, and then once in
// a while; see check. What distribution has just verified and moved to its place is not read again, and neither is what is deleted
// because its time is up: distribution asks Stat before that, too, and holds a lock that pulls need.
type soundStore struct {
	driver.StorageDriver

	mu     sync.Mutex
	checks map[string]*check // by the path of the blob's file
	slots  chan struct{}     // has room for checksAtOnce
}

// useSoundStore puts a soundStore in front of the configured storage of a cache. Where there is no upstream it does nothing:
// what nobody can fetch again must not be removed.
func useSoundStore(config *configuration.Configuration) error {
	if config.Proxy.RemoteURL == "" {
		return nil
	}
	if err := registerSoundStore(); err != nil {
		return err
	}
	if config.Middleware == nil {
		config.Middleware = map[string][]configuration.Middleware{}
	}
	config.Middleware["storage"] = append([]configuration.Middleware{{Name: soundStoreName}}, config.Middleware["storage"]...)
	return nil
}

var registerSoundStore = sync.OnceValue(func() error {
	return storagemiddleware.Register(soundStoreName,
		func(_ context.Context, store driver.StorageDriver, _ map[string]any) (driver.StorageDriver, error) {
			return newSoundStore(store), nil
		})
})

func newSoundStore(store driver.StorageDriver) *soundStore {
	return &soundStore{StorageDriver: store, checks: map[string]*check{}, slots: make(chan struct{}, checksAtOnce)}
}

// Stat implements storagedriver.StorageDriver. A blob that is damaged is not there for a client.
func (s *soundStore) Stat(ctx context.Context, file string) (driver.FileInfo, error) {
	info, err := s.StorageDriver.Stat(ctx, file)
	want, isBlob := digestOf(file)
	if err != nil || !isBlob || info.IsDir() || !ofClient(ctx) {
		return info, err
	}
	if s.check(ctx, file, want, info).failed(ctx) {
		return nil, driver.PathNotFoundError{Path: file, DriverName: s.Name()}
	}
	return info, nil
}

// GetContent implements storagedriver.StorageDriver. A link from a repository that names no digest is not there: distribution
// would answer 500 for ever instead of writing it anew.
func (s *soundStore) GetContent(ctx context.Context, file string) ([]byte, error) {
	content, err := s.StorageDriver.GetContent(ctx, file)
	if err != nil || path.Base(file) != "link" {
		return content, err
	}
	if _, broken := digest.Parse(string(content)); broken != nil {
		logrus.Warnf("the stored link %s is damaged: it is written anew when it is asked for", file)
		return nil, driver.PathNotFoundError{Path: file, DriverName: s.Name()}
	}
	return content, nil
}

// Move implements storagedriver.StorageDriver. distribution moves an upload to the place of a blob when it has verified it.
func (s *soundStore) Move(ctx context.Context, from, to string) error {
	if err := s.StorageDriver.Move(ctx, from, to); err != nil {
		return err
	}
	if _, isBlob := digestOf(to); isBlob {
		if info, err := s.StorageDriver.Stat(ctx, to); err == nil {
			s.remember(to, verified(info))
		}
	}
	return nil
}

// Delete implements storagedriver.StorageDriver. distribution deletes the folder of a blob whose time is up.
func (s *soundStore) Delete(ctx context.Context, folder string) error {
	s.mu.Lock()
	delete(s.checks, path.Join(folder, "data"))
	s.mu.Unlock()
	return s.StorageDriver.Delete(ctx, folder)
}

// ofClient says whether this is done for a client's request. distribution puts the request into the context under this name.
func ofClient(ctx context.Context) bool { return ctx.Value("http.request") != nil }

// check returns the check of the file as it is now; if there is none, it begins one.
func (s *soundStore) check(ctx context.Context, file string, want digest.Digest, info driver.FileInfo) *check {
	s.mu.Lock()
	defer s.mu.Unlock()
	patience := checkPatience
	if known := s.checks[file]; known != nil && known.of(info) {
		if !known.old() {
			return known
		}
		if known.passed() {
			patience = 0
		}
	}
	c := newCheck(info, patience)
	s.checks[file] = c
	go s.run(context.WithoutCancel(ctx), c, file, want)
	return c
}

func (s *soundStore) remember(file string, c *check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks[file] = c
}

// forget makes the next one who asks for the file begin another check.
func (s *soundStore) forget(file string, c *check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checks[file] == c {
		delete(s.checks, file)
	}
}

// digestOf returns the digest that the content of a file must have; false for files that are no blobs.
func digestOf(file string) (digest.Digest, bool) {
	below, isBlob := strings.CutPrefix(file, blobsFolder)
	parts := strings.Split(below, "/")
	if !isBlob || len(parts) != 4 || parts[3] != "data" {
		return "", false
	}
	want := digest.NewDigestFromEncoded(digest.Algorithm(parts[0]), parts[2])
	return want, want.Validate() == nil
}
