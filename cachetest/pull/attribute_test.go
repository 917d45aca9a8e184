package pull

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	manifest = "sha256:aa"
	config   = "sha256:bb"
	layer    = "sha256:cc"
	chain    = "sha256:dd"

	worker1, worker2 = "172.18.0.4", "172.18.0.5"
)

var (
	testImage = Image{
		Reference: "alpha.upstream.test/shop/web:v1", Host: "alpha.upstream.test", Repository: "shop/web", Identifier: "v1",
		Objects: []Object{
			{Digest: manifest, Part: PartManifest, Size: 10},
			{Digest: config, Part: PartConfig, Size: 20},
			{Digest: layer, Part: PartLayer, Size: 4096, chainIDs: []string{chain}},
		},
	}
	mirror = []string{"http://10.96.0.7:5000"}
	all    = state(worker1, manifest, config, layer)
)

// state returns the state of a node with these digests in its content store.
func state(address string, digests ...string) State {
	s := State{Addresses: []netip.Addr{netip.MustParseAddr(address)}, Content: map[string]bool{}, Snapshots: map[string]bool{}}
	for _, digest := range digests {
		s.Content[digest] = true
	}
	return s
}

// unpacked returns the state of a node that unpacked the layer and dropped its content.
func unpacked(address string) State {
	s := state(address, manifest, config)
	s.Snapshots[chain] = true
	return s
}

// pulled returns the evidence of a pull on a node with these states before and after.
func pulled(before, after State, records ...accesslog.Record) Evidence {
	return Evidence{
		Image: testImage, Node: "worker", Mirrors: mirror, Before: before, After: after, Took: 1500 * time.Millisecond, Records: records,
	}
}

// asks returns a record of the upstream's access log.
func asks(asker accesslog.Asker, method, reference, address string, status int, bytes int64) accesslog.Record {
	kind := accesslog.KindBlob
	if reference == manifest || reference == "v1" {
		kind = accesslog.KindManifest
	}
	return accesslog.Record{
		Method: method, Kind: kind, Repository: "shop/web", Reference: reference, Status: status, Bytes: bytes,
		RemoteAddr: address + ":40000", Asker: asker, UserAgent: string(asker),
	}
}

// cacheGets returns successful GETs of a cache, with the address of the node that runs the cache.
func cacheGets(references ...string) (records accesslog.Records) {
	for _, reference := range references {
		records = append(records, asks(accesslog.AskerCache, http.MethodGet, reference, worker1, http.StatusOK, 10))
	}
	return records
}

func nodeGets(address string, references ...string) (records accesslog.Records) {
	for _, reference := range references {
		records = append(records, asks(accesslog.AskerNode, http.MethodGet, reference, address, http.StatusOK, 10))
	}
	return records
}

// sources returns who served the manifest, the config and the layer.
func sources(pull Pull) string {
	var all []string
	for _, served := range pull.Objects {
		all = append(all, string(served.By))
	}
	return strings.Join(all, ", ")
}

func TestAttribute(t *testing.T) {
	fresh := state(worker1)
	head := asks(accesslog.AskerCache, http.MethodHead, "v1", worker1, http.StatusOK, 0)
	nodeHead := asks(accesslog.AskerNode, http.MethodHead, "v1", worker1, http.StatusOK, 0)
	broken := asks(accesslog.AskerCache, http.MethodGet, layer, worker1, http.StatusInternalServerError, 5)
	cut := asks(accesslog.AskerCache, http.MethodGet, layer, worker1, http.StatusOK, 5)
	cut.Aborted = true
	nodeCut := nodeGets(worker1, layer)[0]
	nodeCut.Aborted = true
	elsewhere := nodeGets(worker1, layer)
	elsewhere[0].Repository = "shop/other"
	harness := asks(accesslog.AskerHarness, http.MethodGet, manifest, "127.0.0.1", http.StatusOK, 10)
	failed := pulled(fresh, state(worker1, manifest, config))
	failed.Failure = "unexpected EOF"
	direct := pulled(fresh, all)
	direct.Mirrors = nil

	for _, tc := range []struct {
		name     string
		pull     Evidence
		records  accesslog.Records
		want     string
		bytes    int64
		fallback bool
	}{
		{"first pull", pulled(fresh, all), cacheGets(manifest, config, layer), "cache miss, cache miss, cache miss", 4126, false},
		{"manifest by its tag", pulled(fresh, all), cacheGets("v1", config, layer), "cache miss, cache miss, cache miss", 4126, false},
		{"only the manifest, by its tag", pulled(fresh, all), cacheGets("v1"), "cache miss, cache hit, cache hit", 4126, false},
		{"stored in the cache", pulled(fresh, all), accesslog.Records{head}, "cache hit, cache hit, cache hit", 4126, false},
		{"nobody asked", pulled(fresh, all), nil, "cache hit, cache hit, cache hit", 4126, false},
		{"a layer is new", pulled(fresh, all), cacheGets(layer), "cache hit, cache hit, cache miss", 4126, false},
		{"for the testbed itself", pulled(fresh, all), accesslog.Records{harness}, "cache hit, cache hit, cache hit", 4126, false},
		{"another repository", pulled(fresh, all), elsewhere, "cache hit, cache hit, cache hit", 4126, false},
		{"there before", pulled(all, all), accesslog.Records{head}, "node, node, node", 0, false},
		{"there, unpacked", pulled(unpacked(worker1), unpacked(worker1)), nil, "node, node, node", 0, false},
		{"discarded when unpacked", pulled(fresh, unpacked(worker1)), cacheGets(layer), "cache hit, cache hit, cache miss", 4126, false},
		{"the cache is gone", pulled(fresh, all), nodeGets(worker1, manifest, config, layer), "upstream, upstream, upstream", 4126, true},
		{"only the tag is asked for", pulled(all, all), accesslog.Records{nodeHead}, "node, node, node", 0, true},
		{"the cache breaks", pulled(fresh, all), append(accesslog.Records{cut}, nodeGets(worker1, layer)...), "cache hit, cache hit, upstream", 4126, true},
		{"the cache tries again", pulled(fresh, all), append(accesslog.Records{broken, cut}, cacheGets(layer)...), "cache hit, cache hit, cache miss", 4126, false},
		{"the cache failed and has it", pulled(fresh, all), accesslog.Records{broken}, "cache hit, cache hit, cache hit", 4126, false},
		{"the upstream cuts the node off", pulled(fresh, all), append(accesslog.Records{nodeCut}, cacheGets(layer)...), "cache hit, cache hit, cache miss", 4126, true},
		{"another node asks", pulled(fresh, all), nodeGets(worker2, layer), "cache hit, cache hit, cache hit", 4126, false},
		{"by an IPv4 address in IPv6", pulled(fresh, all), nodeGets("[::ffff:"+worker1+"]", layer), "cache hit, cache hit, upstream", 4126, true},
		{"no mirror", direct, nodeGets(worker1, manifest, config, layer), "upstream, upstream, upstream", 4126, false},
		{"no mirror and nobody asked", direct, nil, "unknown, unknown, unknown", 4126, false},
		{"failed", failed, append(cacheGets(manifest, config), cut), "cache miss, cache miss, missing", 30, false},
		{"failed, the node asked too", failed, nodeGets(worker1, layer), "cache hit, cache hit, missing", 30, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.pull.Records = tc.records
			pull := Attribute(tc.pull).Pull
			if got := sources(pull); got != tc.want {
				t.Errorf("served by %s, want %s", got, tc.want)
			}
			if pull.Bytes != tc.bytes || pull.Fallback != tc.fallback {
				t.Errorf("%d bytes, fallback %v; want %d, %v", pull.Bytes, pull.Fallback, tc.bytes, tc.fallback)
			}
			if pull.Seconds != 1.5 || pull.Error != tc.pull.Failure {
				t.Errorf("%vs, error %q", pull.Seconds, pull.Error)
			}
		})
	}
}

func TestAttributeCountsRequests(t *testing.T) {
	records := append(cacheGets(layer, layer), nodeGets(worker1, layer)...)
	found := Attribute(pulled(state(worker1), all, records...))
	served := found.Pull.Objects[2]
	if served.CacheGets != 2 || served.NodeGets != 1 || served.UpstreamBytes != 30 {
		t.Errorf("%+v, want 2 GETs by the cache, 1 by the node, 30 bytes", served)
	}
	if want := (Traffic{CacheGets: 2, NodeGets: 1, Bytes: 30}); found.Upstream != want {
		t.Errorf("traffic %+v, want %+v", found.Upstream, want)
	}
	if len(found.Notes) > 0 {
		t.Errorf("notes %q", found.Notes)
	}
}

func TestAttributeNamesOtherClients(t *testing.T) {
	curl := asks(accesslog.AskerOther, http.MethodGet, manifest, "172.18.0.1", http.StatusOK, 10)
	harness := asks(accesslog.AskerHarness, http.MethodGet, manifest, "172.18.0.1", http.StatusOK, 10)
	records := append(nodeGets(worker2, layer), curl, harness, curl)
	found := Attribute(pulled(state(worker1), all, records...))
	want := "the upstream also had 3 requests for the repository from other clients: node at 172.18.0.5, other at 172.18.0.1"
	if len(found.Notes) != 1 || !strings.HasSuffix(found.Notes[0], want) {
		t.Errorf("notes %q, want %q", found.Notes, want)
	}
}

// TestAttributeWithoutLog checks that a missing access log is not treated as an empty log.
func TestAttributeWithoutLog(t *testing.T) {
	evidence := pulled(state(worker1, config), all)
	evidence.LogProblem = "connection refused"
	found := Attribute(evidence)
	if got, want := sources(found.Pull), "unknown, node, unknown"; got != want {
		t.Errorf("served by %s, want %s", got, want)
	}
	if len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "connection refused") {
		t.Errorf("notes %q", found.Notes)
	}
}

// TestAttributeWithoutDescription checks that objects are found in the access log and on the node.
func TestAttributeWithoutDescription(t *testing.T) {
	head := asks(accesslog.AskerCache, http.MethodHead, "v1", worker1, http.StatusOK, 0)
	records := append(accesslog.Records{head}, cacheGets(manifest, manifest, layer)...)
	evidence := pulled(state(worker1, "sha256:old"), state(worker1, "sha256:old", manifest, config), records...)
	evidence.Image.Objects = nil
	found := Attribute(evidence)
	var got []string
	for _, served := range found.Pull.Objects {
		got = append(got, string(served.Part)+" "+served.Digest+" "+string(served.By))
	}
	want := "manifest sha256:aa cache miss, blob sha256:cc cache miss, content sha256:bb cache hit"
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
	if found.Pull.Bytes != 20 {
		t.Errorf("%d bytes, want what the upstream sent, 20", found.Pull.Bytes)
	}
}
