package nodeconfig

import (
	"fmt"
	"strings"
)

// Registry is one upstream registry with a cache, as a node sees it.
type Registry struct {
	// Upstream is the registry as image references name it: <host>[:<port>]. It names the directory below CertsDir.
	Upstream string
	// Endpoint is the URL of the cache, such as "http://10.4.246.205:5000".
	Endpoint string
	// UpstreamURL is the URL of the upstream, which containerd falls back to.
	UpstreamURL string
}

// Argument returns the argument of the script for r: <upstream_host>,<endpoint>,<upstream_url>.
func (r Registry) Argument() string {
	return r.Upstream + "," + r.Endpoint + "," + r.UpstreamURL
}

// ParseArgument is the inverse of Registry.Argument.
func ParseArgument(argument string) (Registry, error) {
	parts := strings.Split(argument, ",")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Registry{}, fmt.Errorf("argument %q is not <upstream_host>,<endpoint>,<upstream_url>", argument)
	}
	return Registry{Upstream: parts[0], Endpoint: parts[1], UpstreamURL: parts[2]}, nil
}
