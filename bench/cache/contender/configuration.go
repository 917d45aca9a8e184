package contender

import (
	"fmt"
	"path/filepath"
	"strings"
)

// distribution is the configuration that the extension deploys, for its cache and a stock image.
func distribution(site Site, listen ports) string {
	return fmt.Sprintf(`version: 0.1
log: {level: info, fields: {service: registry}}
http:
  addr: %s
  draintimeout: 5s
  debug: {addr: %s, prometheus: {enabled: true, path: /metrics}}
  headers: {X-Content-Type-Options: [nosniff]}
health: {storagedriver: {enabled: true, interval: 10s, threshold: 3}}
proxy: {remoteurl: %q, ttl: 168h}
storage:
  delete: {enabled: true}
  filesystem: {rootdirectory: %q}
  tag: {concurrencylimit: 5}
`, listen.serve, listen.debug, site.Upstream, site.Volume)
}

const (
	ourKeys = "cache: {upstream: upstream.test}\n"
	// The default configuration of the stock image has this cache of descriptors.
	stockKeys = "  cache: {blobdescriptor: inmemory}\n"
)

// nginx is a pull-through proxy_cache: what has a digest is valid for a week, a tag for a second,
// and while the upstream is away for as long as it is stored. As many clients as wish wait for one
// download (by default for five seconds only).
func nginx(site Site, listen ports) string {
	return strings.NewReplacer(
		"VOLUME", site.Volume, "FOLDER", filepath.Join(site.Folder, "nginx"),
		"UPSTREAM", strings.TrimPrefix(site.Upstream, "http://"), "LISTEN", listen.serve,
	).Replace(nginxTemplate)
}

const nginxTemplate = `daemon off;
user root;
pid FOLDER.pid;
worker_processes auto;
worker_rlimit_nofile 65536;
events { worker_connections 8192; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path FOLDER.temp;
  proxy_temp_path FOLDER.temp;
  fastcgi_temp_path FOLDER.temp;
  uwsgi_temp_path FOLDER.temp;
  scgi_temp_path FOLDER.temp;
  proxy_cache_path VOLUME levels=1:2 keys_zone=blobs:10m inactive=7d use_temp_path=off;
  upstream registry { server UPSTREAM; keepalive 32; }
  server {
    listen LISTEN;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_cache blobs;
    proxy_cache_key $uri;
    proxy_cache_lock on;
    proxy_cache_lock_timeout 15m;
    proxy_cache_lock_age 15m;
    proxy_cache_use_stale error timeout http_500 http_502 http_503 http_504;
    proxy_ignore_headers Cache-Control Expires Set-Cookie Vary X-Accel-Expires;
    location = /ready { return 200; }
    location / { proxy_pass http://registry; proxy_cache_valid 200 1s; }
    location ~ /(blobs|manifests)/sha256: { proxy_pass http://registry; proxy_cache_valid 200 7d; }
  }
}
`
