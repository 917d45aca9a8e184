package configuration

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxWorkers   = 5
	maxUpstreams = 8
	// maxName limits the length of container and cache names that contain it.
	maxName = 20
	// inUserNamespace is a feature gate that the testbed itself sets.
	inUserNamespace = "KubeletInUserNamespace"
)

var gate = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Validate returns the mistakes, each with its field. The defaults must be set.
func Validate(t *Testbed) field.ErrorList {
	return append(validateShoot(&t.Shoot, field.NewPath("shoot")), validateUpstreams(t, field.NewPath("upstreams"))...)
}

func validateShoot(s *Shoot, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if workers := *s.Workers; workers < 1 || workers > maxWorkers {
		errs = append(errs, field.Invalid(at.Child("workers"), workers, "must be 1 to 5"))
	}
	errs = append(errs, oneOf(at.Child("ipFamily"), s.IPFamily, IPv4, IPv6, DualStack)...)
	errs = append(errs, oneOf(at.Child("kubeProxyMode"), s.KubeProxyMode, NFTables, IPTables)...)
	for name := range s.FeatureGates {
		errs = append(errs, validateGate(name, at.Child("featureGates").Key(name))...)
	}
	containerd := at.Child("containerd")
	errs = append(errs, oneOf(containerd.Child("pull"), s.Containerd.Pull, PullLocal, PullTransfer)...)
	for _, folder := range strings.Split(s.Containerd.ConfigPath, ":") {
		if !path.IsAbs(folder) || path.Clean(folder) != folder {
			errs = append(errs, field.Invalid(containerd.Child("configPath"), s.Containerd.ConfigPath,
				"must be absolute paths, separated by colons"))
			break
		}
	}
	return errs
}

func oneOf[T ~string](at *field.Path, value T, known ...T) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, known)}
}

// validateGate checks the form only. Kubernetes refuses to start with an unknown gate.
func validateGate(name string, at *field.Path) field.ErrorList {
	switch {
	case name == inUserNamespace:
		return field.ErrorList{field.Forbidden(at, "the testbed sets it if the machine needs it")}
	case !gate.MatchString(name):
		return field.ErrorList{field.Invalid(at, name, "must be the name of a feature gate")}
	}
	return nil
}

func validateUpstreams(t *Testbed, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if count := len(t.Upstreams); count == 0 || count > maxUpstreams {
		errs = append(errs, field.Invalid(at, count, "must be 1 to 8"))
	}
	names := map[string]bool{}
	for i, upstream := range t.Upstreams {
		name := at.Index(i).Child("name")
		switch problems := validation.IsDNS1123Label(upstream.Name); {
		case upstream.Name == "":
			errs = append(errs, field.Required(name, "the first label of the registry's host"))
		case len(problems) > 0:
			errs = append(errs, field.Invalid(name, upstream.Name, problems[0]))
		case len(upstream.Name) > maxName:
			errs = append(errs, field.TooLong(name, upstream.Name, maxName))
		case names[upstream.Name]:
			errs = append(errs, field.Duplicate(name, upstream.Name))
		}
		names[upstream.Name] = true
		if t.Shoot.Manifest != "" && upstream.Cached != nil {
			errs = append(errs, field.Forbidden(at.Index(i).Child("cached"), "shoot.manifest says which upstreams have a cache"))
		}
	}
	return errs
}
