// Package registry serves a pull-through cache for one upstream: distribution's HTTP layer and
// configuration format, with a pull-through of its own.
//
// probe answers what nodes ask again and again. Any other request passes namespace (what
// distribution asks for), cache (what happens to it), and then store (the volume), fetch (the
// download of a blob, shared by all clients) or, for a manifest, peer (other replicas) and
// upstream, which fetch asks, too. index knows what is stored, and chooses what is evicted.
package registry
