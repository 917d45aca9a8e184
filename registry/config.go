package registry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/gardener-extensions/registry-cache/registry/ecr"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// Config contains the keys that a cache's configuration file may have: keys of distribution's
// configuration v3, some of them only for a stock image, and the section "cache", which a stock
// image ignores.
type Config struct {
	Version configuration.Version
	Log     struct {
		Level  string
		Fields map[string]string
	}
	Storage struct {
		Filesystem struct{ RootDirectory string }
		Delete     struct{ Enabled bool }         // for a stock image
		Tag        struct{ ConcurrencyLimit int } // for a stock image
	}
	HTTP   httpKeys
	Health struct{ StorageDriver configuration.StorageDriver }
	Proxy  struct {
		RemoteURL, Username, Password string
		TTL                           *time.Duration
	}
	Cache cacheKeys

	file  string
	limit int64 // as last read from the file
}

type httpKeys struct {
	Addr         string
	DrainTimeout time.Duration
	Headers      map[string][]string
	TLS          struct{ Certificate, Key string }
	Debug        configuration.Debug
}

type cacheKeys struct {
	// Upstream is the upstream's name in image references, such as docker.io. A request for another
	// one (containerd's parameter ns) is refused.
	Upstream string
	// Limit is the maximum number of stored bytes. 0 means the size of the volume. See Config.Limit.
	Limit int64
	// Peers is <host>:<port>. The host resolves to the addresses of all replicas.
	Peers string
	// Owned makes the cache accept any volume as its own.
	Owned bool
	// ECR configures the credentials of an upstream in Amazon ECR, instead of proxy.username.
	ECR ecrKeys
	// ClientTimeout is the time within which a client must read each MiB.
	ClientTimeout time.Duration
}

type ecrKeys struct {
	AccessKeyID, SecretAccessKey, SessionToken, RoleARN string
	Region                                              string // default: from the upstream's name
	Endpoint                                            string // default: AWS
}

// Load reads a configuration file. Environment variables such as REGISTRY_PROXY_REMOTEURL override
// it. An error about a key names the key and what is allowed.
func Load(name string) (*Config, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	c := &Config{}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	err = withAllowedKeys(decoder.Decode(c))
	parser := configuration.NewParser("registry", []configuration.VersionedParseInfo{{
		Version: configuration.CurrentVersion, ParseAs: reflect.TypeFor[Config](),
		ConversionFunc: func(c any) (any, error) { return c, nil },
	}})
	if err == nil { // applies the environment variables
		err = parser.Parse(content, c)
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", name, err)
	}
	c.file, c.limit = name, c.Cache.Limit
	return c.withDefaults(), nil
}

// withDefaults sets distribution's defaults, and a drain timeout below the 30 s after which
// Kubernetes kills a container.
func (c *Config) withDefaults() *Config {
	c.Storage.Filesystem.RootDirectory = cmp.Or(c.Storage.Filesystem.RootDirectory, "/var/lib/registry")
	c.HTTP.DrainTimeout = cmp.Or(c.HTTP.DrainTimeout, 25*time.Second)
	c.HTTP.Debug.Prometheus.Path = cmp.Or(c.HTTP.Debug.Prometheus.Path, "/metrics")
	c.Cache.ClientTimeout = cmp.Or(c.Cache.ClientTimeout, time.Minute)
	c.Proxy.TTL = cmp.Or(c.Proxy.TTL, new(7*24*time.Hour))
	return c
}

func (c *Config) check() error {
	remote, err := url.Parse(c.Proxy.RemoteURL)
	isURL := err == nil && (remote.Scheme == "http" || remote.Scheme == "https") && remote.Host != "" &&
		remote.User == nil && strings.Trim(remote.Path, "/") == "" && remote.RawQuery == ""
	endpoint, noEndpoint := url.Parse(c.Cache.ECR.Endpoint)
	_, _, noPeers := net.SplitHostPort(c.Cache.Peers)
	switch keys := c.Cache.ECR; {
	case !isURL:
		return errors.New("proxy.remoteurl must have the form http[s]://<host>[:<port>]") // the URL may contain a secret
	case (c.HTTP.TLS.Certificate == "") != (c.HTTP.TLS.Key == ""):
		return errors.New("http.tls.certificate and http.tls.key must be set together")
	case c.Proxy.TTL != nil && *c.Proxy.TTL < 0:
		return fmt.Errorf("proxy.ttl is %s, but must not be negative", c.Proxy.TTL)
	case c.Cache.Limit < 0:
		return fmt.Errorf("cache.limit is %d bytes, but must not be negative", c.Cache.Limit)
	case c.Cache.ClientTimeout < 0 || c.HTTP.DrainTimeout < 0:
		return fmt.Errorf("cache.clienttimeout is %s and http.draintimeout %s: a timeout must not be negative", c.Cache.ClientTimeout, c.HTTP.DrainTimeout)
	case noPeers != nil && c.Cache.Peers != "":
		return fmt.Errorf("cache.peers must have the form <host>:<port>: %w", noPeers)
	case keys == ecrKeys{}:
		return nil
	case keys.AccessKeyID == "" || keys.SecretAccessKey == "":
		return errors.New("cache.ecr.accesskeyid and cache.ecr.secretaccesskey must be set together")
	case c.Proxy.Username != "":
		return errors.New("cache.ecr and proxy.username must not be set together")
	case keys.Endpoint != "" && (noEndpoint != nil || endpoint.Host == "" || endpoint.User != nil):
		return errors.New("cache.ecr.endpoint must have the form http[s]://<host>[:<port>]")
	}
	return nil
}

// Limit reads cache.limit from the file again, because the controller changes it without a restart
// when a volume grows. While the file is invalid, Limit returns the last valid limit. Limit is not
// safe for concurrent use.
func (c *Config) Limit() int64 {
	if now, err := Load(c.file); err == nil && now.Cache.Limit != c.limit {
		c.limit, c.Cache.Limit = now.Cache.Limit, now.Cache.Limit
	}
	return c.Cache.Limit
}

// credentials sets o.Credentials to the configured credentials, if any.
func (c *Config) credentials(o *upstream.Options) error {
	switch ecrKeys := c.Cache.ECR; {
	case ecrKeys.AccessKeyID != "":
		source, err := ecr.New(ecr.Options{
			Host: cmp.Or(c.Cache.Upstream, o.URL.Host), Region: ecrKeys.Region, RoleARN: ecrKeys.RoleARN, Endpoint: ecrKeys.Endpoint, Roots: o.Roots,
			AccessKeyID: ecrKeys.AccessKeyID, SecretAccessKey: ecrKeys.SecretAccessKey, SessionToken: ecrKeys.SessionToken,
		})
		if err != nil {
			return fmt.Errorf("cache.ecr: %w", err)
		}
		o.Credentials = source.Credentials
	case c.Proxy.Username != "" || c.Proxy.Password != "":
		o.Credentials = func(context.Context, string) (string, string, error) { return c.Proxy.Username, c.Proxy.Password, nil }
	}
	return nil
}

// headers returns the headers that the cache adds to every answer.
func (c *Config) headers() http.Header {
	headers := http.Header{"Docker-Distribution-Api-Version": {"registry/2.0"}}
	for name, values := range c.HTTP.Headers {
		headers[http.CanonicalHeaderKey(name)] = values
	}
	return headers
}

var unknownKey = regexp.MustCompile(`(line \d+): field (\S+) not found in type (.+)`)

// withAllowedKeys adds the allowed keys to an error about an unknown key.
func withAllowedKeys(err error) error {
	kinds, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	m := unknownKey.FindStringSubmatch(kinds.Errors[0])
	if m == nil {
		return errors.New(kinds.Errors[0])
	}
	allowed := strings.Join(keysOf(reflect.TypeFor[Config](), m[3]), ", ")
	return fmt.Errorf("%s: unknown key %s, allowed are %s", m[1], m[2], allowed)
}

// keysOf returns the keys of the type called name, at or below t.
func keysOf(t reflect.Type, name string) (keys []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for field := range t.Fields() {
		if t.String() == name && field.IsExported() {
			keys = append(keys, strings.ToLower(field.Name))
		} else if keys == nil {
			keys = keysOf(field.Type, name)
		}
	}
	return keys
}

// trustedCAs returns the system's CAs (SSL_CERT_FILE and SSL_CERT_DIR, as crypto/x509 reads them)
// and the built-in public CAs.
//
// Package x509roots/fallback does not suffice: Go uses its list only if the system has no CAs, and
// the upstream's private CA in SSL_CERT_DIR counts as one. Blobs are often on a host with a public
// certificate.
func trustedCAs() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the CAs of the system (SSL_CERT_FILE, SSL_CERT_DIR): %w", err)
	}
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read a built-in CA: %w", err)
		}
		if root.Constraint == nil {
			pool.AddCert(certificate)
		} else {
			pool.AddCertWithConstraint(certificate, root.Constraint)
		}
	}
	return pool, nil
}
