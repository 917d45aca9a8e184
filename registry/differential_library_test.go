package registry

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const diffDockerType = "application/vnd.docker.distribution.manifest.v2+json"

// diffObject is a manifest or a blob.
type diffObject struct {
	kind    string // manifests or blobs
	media   string
	content []byte
	digest  digest.Digest
}

// diffObjects are all objects of the upstream, by name.
var diffObjects = sync.OnceValue(func() map[string]diffObject {
	all := map[string]diffObject{}
	blob := func(name string, size int, algorithm digest.Algorithm, prefix string) v1.Descriptor {
		content := []byte(prefix)
		for block := digest.FromString(name); len(content) < size; block = digest.FromString(block.String()) {
			content = append(content, block...)
		}
		content = content[:max(size, len(prefix))]
		o := diffObject{"blobs", "application/octet-stream", content, algorithm.FromBytes(content)}
		all[name] = o
		return v1.Descriptor{MediaType: v1.MediaTypeImageLayerGzip, Digest: o.digest, Size: int64(len(content))}
	}
	config := blob("config", 300, digest.SHA256, `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers"}}`)
	config.MediaType = v1.MediaTypeImageConfig
	none := blob("none", 2, digest.SHA256, "{}")
	none.MediaType = v1.MediaTypeEmptyJSON
	layer, small, empty := blob("layer", 70000, digest.SHA256, ""), blob("small", 700, digest.SHA256, ""), blob("empty", 0, digest.SHA256, "")
	long := blob("sha512", 66000, digest.SHA512, "")
	manifest := func(name, media string, value any) v1.Descriptor {
		content, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		o := diffObject{"manifests", media, content, digest.FromBytes(content)}
		all[name] = o
		return v1.Descriptor{MediaType: media, Digest: o.digest, Size: int64(len(content))}
	}
	version := specs.Versioned{SchemaVersion: 2}
	image := manifest("image", v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: version, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer, small, empty},
	})
	second := manifest("second", v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: version, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{small, long},
	})
	manifest("plain", v1.MediaTypeImageManifest, v1.Manifest{Versioned: version, Config: config, Layers: []v1.Descriptor{small}})
	manifest("docker", diffDockerType, v1.Manifest{Versioned: version, MediaType: diffDockerType, Config: config, Layers: []v1.Descriptor{layer}})
	manifest("artifact", v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: version, MediaType: v1.MediaTypeImageManifest, ArtifactType: "application/vnd.example", Config: none, Layers: []v1.Descriptor{small},
	})
	manifest("index", v1.MediaTypeImageIndex, v1.Index{
		Versioned: version, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{image, second},
	})
	return all
})

// diffHas lists the objects of each repository. diffApp contains all.
var diffHas = map[string][]string{
	diffBase: {"config", "layer", "small", "docker"},
	diffTool: {"none", "small", "artifact"},
}

// diffLibrary is a registry in memory. Its tags move.
type diffLibrary struct {
	mu      sync.Mutex
	tags    map[string]string   // the name of an object, by repository:tag
	history map[string][]string // all objects to which the tag has referred
}

func newDiffLibrary() *diffLibrary {
	l := &diffLibrary{tags: map[string]string{}, history: map[string][]string{}}
	for tag, name := range map[string]string{"v1": "image", "latest": "index", "plain": "plain", "docker": "docker", "art": "artifact"} {
		l.move(diffApp, tag, name)
	}
	l.move(diffBase, "v1", "docker")
	l.move(diffTool, "v1", "artifact")
	return l
}

// move makes a tag refer to another object, or removes it.
func (l *diffLibrary) move(repository, tag, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tags[repository+":"+tag] = name
	l.history[repository+":"+tag] = append(l.history[repository+":"+tag], name)
}

// find returns the object for a tag, a digest or a name, and whether the repository contains it.
func (l *diffLibrary) find(repository, ref string) (diffObject, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := l.tags[repository+":"+ref]; name != "" {
		return diffObjects()[name], true
	}
	for name, o := range diffObjects() {
		if o.digest.String() == ref || name == ref && !l.tag(ref) {
			return o, repository == diffApp || slices.Contains(diffHas[repository], name)
		}
	}
	return diffObject{}, false
}

// was reports whether the tag has referred to the digest.
func (l *diffLibrary) was(repository, tag string, d digest.Digest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.history[repository+":"+tag], func(name string) bool {
		return name != "" && diffObjects()[name].digest == d
	})
}

// tag reports whether the reference is a tag, not the name of an object.
func (l *diffLibrary) tag(ref string) bool {
	_, object := diffObjects()[ref]
	return !object || ref == "plain" || ref == "docker"
}

// ServeHTTP implements http.Handler.
func (l *diffLibrary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, registry := strings.CutPrefix(r.URL.Path, "/v2/")
	if path == "" && registry {
		return
	}
	parts := strings.Split(path, "/")
	if len(parts) > 2 {
		repository, kind, ref := strings.Join(parts[:len(parts)-2], "/"), parts[len(parts)-2], parts[len(parts)-1]
		o, found := l.find(repository, ref)
		if _, name := diffObjects()[ref]; found && o.kind == kind && (!name || l.tag(ref)) { // objects are not served by name
			w.Header().Set("Content-Type", o.media)
			w.Header().Set("Docker-Content-Digest", o.digest.String())
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.content))
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"errors":[{"code":"NAME_UNKNOWN","message":"the library has no such thing"}]}`))
}
