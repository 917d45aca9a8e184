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

func attempt(before, after State) Attempt {
	return Attempt{Node: "worker", Round: 1, Mirrors: mirror, Before: before, After: after, Took: 1500 * time.Millisecond}
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

// sources returns who served manifest, config and layer.
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
	failed := attempt(fresh, state(worker1, manifest, config))
	failed.Failure = "unexpected EOF"
	direct := attempt(fresh, all)
	direct.Mirrors = nil

	for _, tc := range []struct {
		name     string
		attempt  Attempt
		records  accesslog.Records
		want     string
		bytes    int64
		fallback bool
	}{
		{"first pull", attempt(fresh, all), cacheGets(manifest, config, layer), "cache miss, cache miss, cache miss", 4126, false},
		{"manifest by its tag", attempt(fresh, all), cacheGets("v1", config, layer), "cache miss, cache miss, cache miss", 4126, false},
		{"only the manifest, by its tag", attempt(fresh, all), cacheGets("v1"), "cache miss, cache hit, cache hit", 4126, false},
		{"stored in the cache", attempt(fresh, all), accesslog.Records{head}, "cache hit, cache hit, cache hit", 4126, false},
		{"nobody asked", attempt(fresh, all), nil, "cache hit, cache hit, cache hit", 4126, false},
		{"a layer is new", attempt(fresh, all), cacheGets(layer), "cache hit, cache hit, cache miss", 4126, false},
		{"for the testbed itself", attempt(fresh, all), accesslog.Records{harness}, "cache hit, cache hit, cache hit", 4126, false},
		{"another repository", attempt(fresh, all), elsewhere, "cache hit, cache hit, cache hit", 4126, false},
		{"there before", attempt(all, all), accesslog.Records{head}, "node, node, node", 0, false},
		{"there, unpacked", attempt(unpacked(worker1), unpacked(worker1)), nil, "node, node, node", 0, false},
		{"discarded when unpacked", attempt(fresh, unpacked(worker1)), cacheGets(layer), "cache hit, cache hit, cache miss", 4126, false},
		{"the cache is gone", attempt(fresh, all), nodeGets(worker1, manifest, config, layer), "upstream, upstream, upstream", 4126, true},
		{"only the tag is asked for", attempt(all, all), accesslog.Records{nodeHead}, "node, node, node", 0, true},
		{"the cache breaks", attempt(fresh, all), append(accesslog.Records{cut}, nodeGets(worker1, layer)...), "cache hit, cache hit, upstream", 4126, true},
		{"the cache tries again", attempt(fresh, all), append(accesslog.Records{broken, cut}, cacheGets(layer)...), "cache hit, cache hit, cache miss", 4126, false},
		{"the cache failed and has it", attempt(fresh, all), accesslog.Records{broken}, "cache hit, cache hit, cache hit", 4126, false},
		{"the upstream cuts the node off", attempt(fresh, all), append(accesslog.Records{nodeCut}, cacheGets(layer)...), "cache hit, cache hit, cache miss", 4126, true},
		{"another node asks", attempt(fresh, all), nodeGets(worker2, layer), "cache hit, cache hit, cache hit", 4126, false},
		{"by an IPv4 address in IPv6", attempt(fresh, all), nodeGets("[::ffff:"+worker1+"]", layer), "cache hit, cache hit, upstream", 4126, true},
		{"no mirror", direct, nodeGets(worker1, manifest, config, layer), "upstream, upstream, upstream", 4126, false},
		{"no mirror and nobody asked", direct, nil, "unknown, unknown, unknown", 4126, false},
		{"failed", failed, append(cacheGets(manifest, config), cut), "cache miss, cache miss, missing", 30, false},
		{"failed, the node asked too", failed, nodeGets(worker1, layer), "cache hit, cache hit, missing", 30, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := Attribute(Evidence{Image: testImage, Attempts: []Attempt{tc.attempt}, Records: tc.records})
			pull := found.Pulls[0]
			if got := sources(pull); got != tc.want {
				t.Errorf("served by %s, want %s", got, tc.want)
			}
			if pull.Bytes != tc.bytes || pull.Fallback != tc.fallback {
				t.Errorf("%d bytes, fallback %v; want %d, %v", pull.Bytes, pull.Fallback, tc.bytes, tc.fallback)
			}
			if pull.Seconds != 1.5 || pull.Error != tc.attempt.Failure {
				t.Errorf("%vs, error %q", pull.Seconds, pull.Error)
			}
		})
	}
}

func TestAttributeCountsRequests(t *testing.T) {
	records := append(cacheGets(layer, layer), nodeGets(worker1, layer)...)
	found := Attribute(Evidence{Image: testImage, Attempts: []Attempt{attempt(state(worker1), all)}, Records: records})
	served := found.Pulls[0].Objects[2]
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

// TestAttributeConcurrent checks that requests of nodes are assigned to their pulls, and that
// objects that a cache fetched are marked as shared.
func TestAttributeConcurrent(t *testing.T) {
	one := attempt(state(worker1), all)
	two := attempt(state(worker2, config), state(worker2, manifest, config, layer))
	two.Node = "worker2"
	records := append(cacheGets(manifest, config), nodeGets(worker2, layer)...)
	found := Attribute(Evidence{Image: testImage, Attempts: []Attempt{one, two}, Records: records})
	if got, want := sources(found.Pulls[0]), "cache miss, cache miss, cache hit"; got != want {
		t.Errorf("worker: %s, want %s", got, want)
	}
	if got, want := sources(found.Pulls[1]), "cache miss, node, upstream"; got != want {
		t.Errorf("worker2: %s, want %s", got, want)
	}
	for i, want := range [][]bool{{true, false, false}, {true, false, false}} {
		for j, served := range found.Pulls[i].Objects {
			if served.Shared != want[j] {
				t.Errorf("%s of %s: shared %v", served.Part, found.Pulls[i].Node, served.Shared)
			}
		}
	}
	if found.Pulls[0].Fallback || !found.Pulls[1].Fallback {
		t.Errorf("fallback %v and %v, want it for worker2", found.Pulls[0].Fallback, found.Pulls[1].Fallback)
	}
	if len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "worker, worker2 pulled concurrently") {
		t.Errorf("notes %q", found.Notes)
	}
}

func TestAttributeNamesOtherClients(t *testing.T) {
	curl := asks(accesslog.AskerOther, http.MethodGet, manifest, "172.18.0.1", http.StatusOK, 10)
	harness := asks(accesslog.AskerHarness, http.MethodGet, manifest, "172.18.0.1", http.StatusOK, 10)
	records := append(nodeGets(worker2, layer), curl, harness, curl)
	found := Attribute(Evidence{Image: testImage, Attempts: []Attempt{attempt(state(worker1), all)}, Records: records})
	want := "the upstream also had 3 requests for the repository from other clients: node at 172.18.0.5, other at 172.18.0.1"
	if len(found.Notes) != 1 || !strings.HasSuffix(found.Notes[0], want) {
		t.Errorf("notes %q, want %q", found.Notes, want)
	}
}

// TestAttributeWithoutLog checks that a missing access log is not treated as an empty log.
func TestAttributeWithoutLog(t *testing.T) {
	found := Attribute(Evidence{
		Image: testImage, LogProblem: "connection refused", Attempts: []Attempt{attempt(state(worker1, config), all)},
	})
	if got, want := sources(found.Pulls[0]), "unknown, node, unknown"; got != want {
		t.Errorf("served by %s, want %s", got, want)
	}
	if len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "connection refused") {
		t.Errorf("notes %q", found.Notes)
	}
}

// TestAttributeWithoutDescription checks that objects are found in the access log and on the node.
func TestAttributeWithoutDescription(t *testing.T) {
	image := testImage
	image.Objects = nil
	head := asks(accesslog.AskerCache, http.MethodHead, "v1", worker1, http.StatusOK, 0)
	records := append(accesslog.Records{head}, cacheGets(manifest, manifest, layer)...)
	found := Attribute(Evidence{
		Image: image, Attempts: []Attempt{attempt(state(worker1, "sha256:old"), state(worker1, "sha256:old", manifest, config))}, Records: records,
	})
	var got []string
	for _, served := range found.Pulls[0].Objects {
		got = append(got, string(served.Part)+" "+served.Digest+" "+string(served.By))
	}
	want := "manifest sha256:aa cache miss, blob sha256:cc cache miss, content sha256:bb cache hit"
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
	if found.Pulls[0].Bytes != 20 {
		t.Errorf("%d bytes, want what the upstream sent, 20", found.Pulls[0].Bytes)
	}
}
