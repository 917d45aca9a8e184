package registryprofile

// Profiles contains the behavior of known registries by name. containerd can pull from each of
// them. Tests add what fails only sometimes, such as rate limits and broken connections. To require
// credentials, they set Username and Password.
var Profiles = map[string]Profile{
	"docker-hub": {
		Description: "token server on a sibling host, tokens of five minutes, 401 for what does not exist, blobs on a CDN",
		Source: "github.com/renovatebot/renovate/discussions/47314, github.com/spegel-org/spegel/issues/484, " +
			"docs.docker.com/docker-hub/usage/pulls",
		Challenge: "bearer", Realms: []string{Sibling}, Anonymous: true, TokenExpiresIn: 300, TokenLife: 300, TokenIssuedAt: true,
		Missing: 401, Headers: map[string]string{"Ratelimit-Limit": "100;w=21600", "Ratelimit-Remaining": "76;w=21600"},
		Redirect: 307, RedirectOf: Blobs, RedirectTo: []string{Foreign}, RedirectSigned: true, RedirectLife: 1200,
	},
	"ghcr": {
		Description: "a placeholder as scope in the challenge of /v2/, tokens without expires_in, blobs on a CDN",
		Source:      "github.com/cloudflare/serverless-registry/issues/148",
		Challenge:   "bearer", RootScope: "repository:user/image:pull", Anonymous: true, TokenField: "token", TokenLife: 300,
		TokenPost: 404, Refused: 403,
		Redirect: 307, RedirectOf: Blobs, RedirectTo: []string{Foreign}, RedirectSigned: true, RedirectLife: 600,
	},
	"quay": {
		Description: "a token server that sends only the token, HEAD without a digest, blobs on a CDN of the same domain",
		Source:      "github.com/moby/buildkit/issues/2055, github.com/quay/quay/pull/1310",
		Challenge:   "bearer", Anonymous: true, TokenField: "token", TokenLife: 3600, TokenPost: 405, HeadWithoutDigest: true,
		Redirect: 302, RedirectOf: Blobs, RedirectTo: []string{Sibling}, RedirectSigned: true, RedirectLife: 600,
	},
	"ecr": {
		Description: "Basic with a token as password, 403 with an empty body for HEAD of blobs, no digest header, blobs in S3",
		Source: "github.com/distribution/distribution/issues/4383, github.com/distribution/distribution/issues/3792, " +
			"github.com/bazel-contrib/rules_img/issues/715",
		Challenge: "basic", HeadWithoutDigest: true, Answers: []Answer{{Method: "HEAD", Path: "/blobs/", Status: 403}},
		Redirect: 307, RedirectOf: Blobs, RedirectTo: []string{Foreign}, RedirectSigned: true, RedirectLife: 3600,
	},
	"ecr-public": {
		Description: "400 without a challenge for an expired token, tokens of one hour for all repositories, 401 for HEAD of blobs",
		Source: "github.com/aws/containers-roadmap/issues/2835, github.com/oras-project/oras-go/issues/1227, " +
			"github.com/distribution/distribution/issues/4383",
		Challenge: "bearer", Scope: "aws", Anonymous: true, TokenField: "token", TokenLife: 3600, TokenPost: 405, Refused: 400,
		Answers:  []Answer{{Method: "HEAD", Path: "^/v2/.*/blobs/", Status: 401, Document: "DENIED"}},
		Redirect: 307, RedirectOf: Blobs, RedirectTo: []string{Foreign}, RedirectSigned: true, RedirectLife: 1200,
	},
	"gar": {
		Description: "404 for a POST to the token server, no scope in the challenge, blobs are redirected on the same host",
		Source: "github.com/containerd/containerd/pull/1465, github.com/gitpod-io/gitpod/issues/11454, " +
			"comment on GCR in containerd's core/remotes/docker/authorizer.go",
		Challenge: "bearer", Scope: "-", Anonymous: true, TokenExpiresIn: 43200, TokenLife: 43200, TokenIssuedAt: true, TokenPost: 404,
		Redirect: 302, RedirectOf: Blobs, RedirectTo: []string{Same}, RedirectRelative: true,
	},
	"registry-k8s": {
		Description: "no challenge, everything is redirected to another registry",
		Source:      "github.com/kubernetes/registry.k8s.io/pull/71 (cmd/archeio/docs/request-handling.md)",
		Redirect:    307, RedirectTo: []string{Foreign},
	},
	"mcr": {
		Description: "no challenge, blobs on a data endpoint of the same domain",
		Source:      "github.com/microsoft/containerregistry/issues/75, github.com/microsoft/containerregistry/pull/45",
		Redirect:    307, RedirectOf: Blobs, RedirectTo: []string{Sibling}, RedirectSigned: true, RedirectLife: 600,
	},
	"acr": {
		Description: "tokens only in access_token, refresh tokens, 400 for a POST with a password, blobs in storage of another domain",
		Source: "azure.github.io/acr/AAD-OAuth.html, azure.github.io/acr/Token-BasicAuth.html, " +
			"comment on ACR in containerd's core/remotes/docker/authorizer.go",
		Challenge: "bearer", TokenField: "access_token", TokenLife: 4500, TokenPost: 400, RefreshToken: "refresh-acr",
		Redirect: 307, RedirectOf: Blobs, RedirectTo: []string{Foreign}, RedirectSigned: true, RedirectLife: 1200,
	},
	"gitlab": {
		Description: "the token server is on another port of the host, tokens of five minutes without expires_in",
		Source:      "github.com/sameersbn/docker-gitlab/issues/754, github.com/mkuchin/docker-registry-web/issues/95",
		Challenge:   "bearer", Realms: []string{Port}, Anonymous: true, TokenField: "token", TokenLife: 300, TokenPost: 404,
	},
	"harbor": {
		Description: "its proxy cache sends blobs without a length, a challenge for Basic after a refused token, 401 for what does not exist",
		Source: "github.com/goharbor/harbor/issues/23373, github.com/goharbor/harbor/issues/17930, " +
			"github.com/goharbor/harbor/issues/15885",
		Challenge: "bearer", Anonymous: true, TokenExpiresIn: 1800, TokenLife: 1800, TokenIssuedAt: true, TokenPost: 405,
		RefusedChallenge: "basic", Missing: 401, BodyOf: Blobs, Chunked: true,
	},
	"nexus": {
		Description: "no scope in the challenge, tokens without a lifetime",
		Source:      "github.com/sonatype/nexus-public/issues/659",
		Challenge:   "bearer", Scope: "-", Anonymous: true, TokenField: "token", TokenPost: 404,
	},
	"artifactory": {
		Description: "401 for a POST to the token server, manifests are redirected on the same host",
		Source: "github.com/containerd/containerd/pull/2166, github.com/containerd/containerd/issues/3556, " +
			"github.com/containerd/containerd/issues/6339",
		Challenge: "bearer", Anonymous: true, TokenExpiresIn: 3600, TokenLife: 3600, TokenPost: 401, Scope: "-",
		Redirect: 302, RedirectOf: Manifests, RedirectTo: []string{Same},
	},
	"ghes": {
		Description: "405 for HEAD of manifests",
		Source:      "github.com/containerd/containerd/issues/5860, github.com/containerd/containerd/issues/3291",
		Challenge:   "basic", Answers: []Answer{{Method: "HEAD", Path: "/manifests/", Status: 405}},
	},
	"gitea": {
		Description: "the scope in the challenge is *, the realm is below the configured URL",
		Source:      "github.com/go-gitea/gitea/issues/36907, github.com/go-gitea/gitea/issues/28039",
		Challenge:   "bearer", Scope: "*", Anonymous: true, TokenField: "token", TokenLife: 86400, TokenPost: 405,
	},
	"lscr": {
		Description: "everything is redirected to a registry of another domain, with a challenge of its own",
		Source:      "github.com/getwud/wud/issues/143, github.com/containerd/containerd/issues/5503",
		Redirect:    307, RedirectTo: []string{Foreign}, RedirectChallenge: "bearer",
	},
}
