package trace

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Image is the image of a trace. Host and Repository are parts of Reference.
type Image struct{ Reference, Host, Repository string }

// ParseImage parses a reference as in a pod.
func ParseImage(image string) (Image, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return Image{}, err
	}
	repository := reference.Context()
	return Image{Reference: reference.Name(), Host: repository.RegistryStr(), Repository: repository.RepositoryStr()}, nil
}

// matches reports whether a reference is in the repository. Any tag or digest matches, since
// containerd resolves a tag to a digest.
func (i Image) matches(reference string) bool {
	rest, found := strings.CutPrefix(reference, i.Host+"/"+i.Repository)
	return found && rest != "" && (rest[0] == ':' || rest[0] == '@')
}

// object returns the kind and the shortened reference of a path of the registry API, for example
// "manifest v1". It returns false for a path outside the repository.
func (i Image) object(path string) (string, bool) {
	rest, found := strings.CutPrefix(path, "/v2/"+i.Repository+"/")
	if !found {
		return "", false
	}
	rest, _, _ = strings.Cut(rest, "?")
	kind, reference, found := strings.Cut(rest, "/")
	if !found || kind != "manifests" && kind != "blobs" {
		return "", false
	}
	return strings.TrimSuffix(kind, "s") + " " + short(reference), true
}

// shortDigest is the number of hex digits that are printed of a digest.
const shortDigest = 12

func short(reference string) string {
	algorithm, hex, found := strings.Cut(reference, ":")
	if !found || len(hex) <= shortDigest {
		return reference
	}
	return algorithm + ":" + hex[:shortDigest]
}
