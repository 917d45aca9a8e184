package trace

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Image is what is traced.
type Image struct {
	// Reference is the whole name, Host and Repository are parts of it.
	Reference, Host, Repository string
}

// ParseImage reads a reference, as pods name it.
func ParseImage(image string) (Image, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return Image{}, err
	}
	repository := reference.Context()
	return Image{Reference: reference.Name(), Host: repository.RegistryStr(), Repository: repository.RepositoryStr()}, nil
}

// named says whether containerd means this image: any tag or digest of the repository, as a tag leads to a digest.
func (i Image) named(reference string) bool {
	rest, found := strings.CutPrefix(reference, i.Host+"/"+i.Repository)
	return found && rest != "" && (rest[0] == ':' || rest[0] == '@')
}

// asked returns the tag or digest that a path of a registry's API asks for in the repository, shortened; false for another path.
func (i Image) asked(path string) (string, bool) {
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

// shortDigest is how many hex digits of a digest are shown.
const shortDigest = 12

func short(reference string) string {
	algorithm, hex, found := strings.Cut(reference, ":")
	if !found || len(hex) <= shortDigest {
		return reference
	}
	return algorithm + ":" + hex[:shortDigest]
}
