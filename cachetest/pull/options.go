package pull

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// Limits of Options.
const (
	MinTimeout     = time.Second
	MaxTimeout     = 30 * time.Minute
	DefaultTimeout = 5 * time.Minute
)

// Options are the options of a pull.
type Options struct {
	Image string // the reference as in a pod, for example alpha.upstream.test/shop/web:v1
	// Node is the name of the worker that pulls, or the last part of the name ("worker2"). The default
	// is the first worker. All makes every worker pull, one after another; then Node must be empty.
	Node    string
	All     bool
	Fresh   bool          // remove the image and its content from a node before the pull
	Timeout time.Duration // of one pull, MinTimeout to MaxTimeout
}

// InvalidError is the error for an invalid value in Options or PushOptions.
type InvalidError struct{ Option, Problem string }

func (e *InvalidError) Error() string { return e.Option + ": " + e.Problem }

// UsageError makes internal/program exit with code 2.
func (*InvalidError) UsageError() {}

// Invalid returns an InvalidError.
func Invalid(option, format string, args ...any) error {
	return &InvalidError{Option: option, Problem: fmt.Sprintf(format, args...)}
}

// Validate checks the options without a testbed. Its error is an *InvalidError.
func (o Options) Validate() error {
	switch {
	case o.All && o.Node != "":
		return Invalid("node", "%s and all nodes exclude each other", o.Node)
	case o.Timeout < MinTimeout || o.Timeout > MaxTimeout:
		return Invalid("timeout", "%s is not between %s and %s", o.Timeout, MinTimeout, MaxTimeout)
	}
	if _, err := name.ParseReference(o.Image); err != nil {
		return Invalid("image", "%v", err)
	}
	return nil
}

// Plan validates the options against upstreams and workers, and returns the image and the nodes
// that pull it. Its error is an *InvalidError.
func (o Options) Plan(hosts, workers []string) (Image, []string, error) {
	if err := o.Validate(); err != nil {
		return Image{}, nil, err
	}
	image, err := parseImage(o.Image, hosts)
	if err != nil {
		return Image{}, nil, err
	}
	nodes, err := o.nodes(workers)
	return image, nodes, err
}

func parseImage(image string, hosts []string) (Image, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return Image{}, Invalid("image", "%v", err)
	}
	repository := reference.Context()
	if host := repository.RegistryStr(); !slices.Contains(hosts, host) {
		return Image{}, Invalid("image", "%s is not an upstream of this testbed, use one of %s", host, strings.Join(hosts, ", "))
	}
	return Image{
		Reference: reference.Name(), Host: repository.RegistryStr(), Repository: repository.RepositoryStr(),
		Identifier: reference.Identifier(),
	}, nil
}

func (o Options) nodes(workers []string) ([]string, error) {
	switch {
	case len(workers) == 0:
		return nil, Invalid("node", "the shoot has no workers")
	case o.All:
		return workers, nil
	case o.Node == "":
		return workers[:1], nil
	}
	for _, worker := range workers {
		if worker == o.Node || strings.HasSuffix(worker, "-"+o.Node) {
			return []string{worker}, nil
		}
	}
	return nil, Invalid("node", "%s is not a worker of the shoot, use one of %s", o.Node, strings.Join(workers, ", "))
}
