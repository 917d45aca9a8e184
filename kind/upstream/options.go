package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

const (
	// Label is on every upstream container of a testbed, with the prefix as its value. Nodes have
	// kind's label with the name of their cluster instead.
	Label = "registry-cache.testbed"
	// DefaultPrefix is the default name prefix of a testbed. See Host for what depends on it.
	DefaultPrefix = "registry-cache"

	hostLabel   = Label + ".upstream" // the host name of an upstream
	proxyLabel  = Label + ".proxy"    // the host name of a proxy
	configLabel = Label + ".config"   // the fingerprint of the container's options
)

// Host returns the host name of a testbed's upstream or proxy: <name>.upstream.test for the default
// prefix. All testbeds share Docker's kind network, so with any other prefix the host name contains
// the prefix (<name>.<prefix>.upstream.test).
func Host(prefix, name string) string {
	domain := "upstream.test"
	if prefix != DefaultPrefix {
		domain = prefix + "." + domain
	}
	return name + "." + domain
}

// sitesOf returns two more names of an upstream: a host in its own domain and one in another
// domain. On them, it can serve tokens and content as some registries do.
func sitesOf(host string) server.Sites {
	return server.Sites{Sibling: "site." + host, Foreign: strings.TrimSuffix(host, ".upstream.test") + ".elsewhere.test"}
}

// names returns all DNS names of an upstream.
func (o Options) names() []string {
	sites := sitesOf(o.Host)
	return append([]string{o.Host, sites.Sibling, sites.Foreign}, o.Aliases...)
}

const upstreamProgram = "/upstream-registry"

// Binary returns the description of the image of upstreams and proxies for image.Build.
func Binary() image.Binary {
	const owner = 65532 // the user of image.NonRoot
	return image.Binary{
		Name:    "upstream-registry",
		Path:    upstreamProgram,
		Package: "github.com/gardener-extensions/registry-cache/kind/upstream/upstream-registry",
		Entries: []image.Entry{
			{Path: server.Storage, Mode: fs.ModeDir | 0o755, Owner: owner},
			{Path: "/etc/upstream", Mode: fs.ModeDir | 0o755},
			{Path: path.Dir(server.FaultsFile), Mode: fs.ModeDir | 0o700, Owner: owner},
		},
	}
}

// Options describe an upstream or a proxy to start.
type Options struct {
	Prefix string // the prefix of the testbed, a DNS label
	// Host is the DNS name that nodes and caches use. Its first label is part of the container's name.
	Host    string
	Aliases []string        // more DNS names of the upstream
	Network string          // the name of an existing Docker network, usually "kind"
	CA      *certificate.CA // signs the certificate: the CA that the nodes trust, or a private one
	Image   image.Built     // built from Binary
}

// containerName returns a fixed name, so that two processes cannot start the same upstream.
func (o Options) containerName() string {
	name, _, _ := strings.Cut(o.Host, ".")
	return o.Prefix + "-upstream-" + name
}

// fingerprint returns a hash of the options. A running container is kept only if its hash is equal.
func (o Options) fingerprint() string {
	return fingerprint(o.Host, strings.Join(o.Aliases, " "), o.Network, o.Image.Ref, string(o.CA.PEM()))
}

func fingerprint(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
