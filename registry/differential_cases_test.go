package registry

import "github.com/gardener-extensions/registry-cache/internal/registryprofile"

// diffPull requests a tag and a layer, each by containerd through the cache, and by a client of the
// cache alone.
var diffPull = diffStep{
	{Do: "resolve", Repo: diffApp, Ref: "v1"}, {Do: "fetch", Repo: diffApp, Ref: "layer"},
	{Do: "resolve", Repo: diffApp, Ref: "v1", Alone: true}, {Do: "fetch", Repo: diffApp, Ref: "layer", Alone: true},
}

func diffEvent(do string, from int) diffStep { return diffStep{{Do: do, From: from}} }

func diffMove(to string) diffStep {
	return diffStep{{Do: "move", Repo: diffApp, Ref: "v1", To: to}}
}

func diffTag(repository string) diffStep {
	return diffStep{{Do: "resolve", Repo: repository, Ref: "v1", Alone: true}, {Do: "resolve", Repo: repository, Ref: "v1"}}
}

// diffLayer requests a layer from the cache alone.
func diffLayer(repository string) diffAction {
	return diffAction{Do: "fetch", Repo: repository, Ref: "layer", Alone: true}
}

// diffOf pulls from a known registry, with credentials, before and after its tokens expire.
func diffOf(name string) diffSchedule {
	p := diffKnown(name)
	p.Username, p.Password = diffUser, diffPassword
	return diffSchedule{Profile: p, Login: true, Steps: []diffStep{
		diffPull, diffEvent("sleep", 700), diffMove("second"), diffPull,
		{{Do: "resolve", Repo: "no/such", Ref: "v1"}, {Do: "fetch", Repo: diffTool, Ref: "layer"}, {Do: "resolve", Repo: diffApp, Ref: "typo"}},
		{{Do: "away", Ref: "503"}}, diffPull, diffEvent("back", 0), diffMove("image"), diffPull,
	}}
}

func diffAnswering(answers ...registryprofile.Answer) registryprofile.Profile {
	return registryprofile.Profile{Answers: answers}
}

// diffCases are schedules by name: behaviors of registries, what clients do to each other, and
// failures that TestDifferential found.
var diffCases = map[string]diffSchedule{
	"nothing special": {Steps: []diffStep{diffPull, diffMove("second"), diffPull, diffEvent("restart", 0), diffPull}},
	"expired token is 400 without a challenge": {
		Profile: registryprofile.Profile{Challenge: "bearer", TokenLife: 300, Refused: 400, TokenField: "token"},
		Steps:   []diffStep{diffPull, diffEvent("sleep", 400), diffMove("second"), diffPull},
	},
	"expired token is 403": {
		Profile: registryprofile.Profile{Challenge: "bearer", TokenLife: 60, Refused: 403},
		Steps:   []diffStep{diffPull, diffEvent("sleep", 400), diffMove("second"), diffPull},
	},
	"401 for what does not exist": {
		Profile: registryprofile.Profile{Challenge: "bearer", Missing: 401},
		Steps:   []diffStep{diffPull, diffTag("no/such")},
	},
	"private repository without credentials": {
		Profile: registryprofile.Profile{Challenge: "bearer", Username: diffUser, Password: diffPassword},
		Steps:   []diffStep{diffPull},
	},
	"realm of another domain": {
		Profile: registryprofile.Profile{Challenge: "bearer", Realms: []string{registryprofile.Foreign}, Username: diffUser, Password: diffPassword},
		Login:   true, Steps: []diffStep{diffPull},
	},
	"anonymous realm of another domain": {
		Profile: registryprofile.Profile{Challenge: "bearer", Realms: []string{registryprofile.Foreign}},
		Login:   true, Steps: []diffStep{diffPull},
	},
	"realm of the same domain": {
		Profile: registryprofile.Profile{Challenge: "bearer", Realms: []string{registryprofile.Sibling}, Username: diffUser, Password: diffPassword},
		Login:   true, Steps: []diffStep{diffPull},
	},
	"realm on another port of an address": {
		Profile: registryprofile.Profile{Challenge: "bearer", Realms: []string{registryprofile.Port}, Username: diffUser, Password: diffPassword},
		IP:      true, Login: true, Steps: []diffStep{diffPull},
	},
	"blobs without a length": {
		Profile: registryprofile.Profile{Chunked: true, BodyOf: registryprofile.Blobs}, Steps: []diffStep{diffPull},
	},
	"405 for HEAD of manifests": {
		Profile: diffAnswering(registryprofile.Answer{Method: "HEAD", Path: "/manifests/", Status: 405}),
		Steps:   []diffStep{diffPull, diffMove("second"), diffPull},
	},
	"manifest as a blob and a blob as manifest": {
		Steps: []diffStep{
			{{Do: "fetch", Repo: diffApp, Ref: "image", Alone: true}, diffLayer(diffApp), {Do: "fetch", Repo: diffApp, Ref: "config", Alone: true}},
			{{Do: "cross", Repo: diffApp, Ref: "image"}, {Do: "cross", Repo: diffApp, Ref: "layer"}, {Do: "cross", Repo: diffApp, Ref: "config"}},
		},
	},
	"a policy refuses a tag": {
		Profile: diffAnswering(registryprofile.Answer{Path: "/manifests/v1$", Status: 412, Document: "PRECONDITION"}), Steps: []diffStep{diffPull},
	},
	"429 of the token server": {
		Profile: registryprofile.Profile{Challenge: "bearer", TokenStatus: 429, TokenRetryAfter: "30"},
		Steps:   []diffStep{{{Do: "flood", Repo: diffApp, Ref: "small", From: 40}}},
	},
	"200 with an error document": {
		Profile: diffAnswering(registryprofile.Answer{Path: "/manifests/v1$", Document: "UNKNOWN"}), Steps: []diffStep{diffPull},
	},
	"clock that went back": {
		Steps: []diffStep{diffTag(diffApp), diffMove("second"), diffEvent("clock", 3600), diffTag(diffApp), diffMove("plain"), diffTag(diffApp)},
	},
	"blob of length 0": {
		Profile: registryprofile.Profile{ZeroLength: true, BodyOf: registryprofile.Blobs}, Steps: []diffStep{diffPull},
	},
	"range of a damaged blob": {
		Profile: registryprofile.Profile{Damaged: true, BodyOf: registryprofile.Blobs},
		Steps:   []diffStep{{{Do: "span", Repo: diffApp, Ref: "layer", From: 34500}, diffLayer(diffApp)}},
	},
	"Retry-After of one repository": {
		Profile: diffAnswering(registryprofile.Answer{Path: diffTool, Status: 429, RetryAfter: "1"}),
		Steps: []diffStep{
			diffPull, {{Do: "resolve", Repo: diffTool, Ref: "v1", Alone: true}}, diffMove("second"), diffTag(diffApp), diffTag(diffApp),
		},
	},
	"blob of a repository that does not have it": {
		Profile: registryprofile.Profile{Silence: 300},
		Steps:   []diffStep{{{Do: "foreign", Repo: "bogus/repository", Ref: "layer", Times: 4}, diffLayer(diffApp), diffLayer(diffBase)}},
	},
	"parallel parts of a slow upstream without ranges": {
		Profile: registryprofile.Profile{Ranges: "ignored", BodyOf: registryprofile.Blobs, Rate: 20000},
		Steps:   []diffStep{{{Do: "chunks", Repo: diffApp, Ref: "layer"}}},
	},
	"what is missing, without credentials, beside a tag": {
		Profile: registryprofile.Profile{Challenge: "bearer", Realms: []string{registryprofile.Sibling}, Missing: 401}, IP: true, Login: true,
		Steps: []diffStep{{
			{Do: "resolve", Repo: diffApp, Ref: "v1", Alone: true}, {Do: "cross", Repo: diffApp, Ref: "layer", From: 10, Alone: true},
		}},
	},
	"HEAD in invented repositories": {
		Steps: []diffStep{{diffLayer(diffApp)}, {{Do: "flood", Repo: diffApp, Ref: "layer", From: 40}}},
	},
	"connection that breaks again and again": {
		Profile: registryprofile.Profile{CutAfter: 500, BodyOf: registryprofile.Blobs}, Steps: []diffStep{{diffLayer(diffApp)}},
	},
	"body of a token server without a token": {
		Profile: registryprofile.Profile{Challenge: "bearer", TokenField: "refresh_token"}, Steps: []diffStep{diffPull},
	},
	"upload": {Steps: []diffStep{{{Do: "upload", Repo: diffApp, Ref: "layer"}}}},
	"type of an ambiguous manifest, first and second": {
		Profile: registryprofile.Profile{ContentType: diffDockerType},
		Steps:   []diffStep{{{Do: "resolve", Repo: diffApp, Ref: "plain", Alone: true}}, {{Do: "resolve", Repo: diffApp, Ref: "plain", Alone: true}}},
	},
	"Docker Hub": diffOf("docker-hub"), "GitHub": diffOf("ghcr"), "Quay": diffOf("quay"), "ECR": diffOf("ecr"),
	"ECR Public": diffOf("ecr-public"), "Google": diffOf("gar"), "registry.k8s.io": diffOf("registry-k8s"),
	"Microsoft": diffOf("mcr"), "ACR": diffOf("acr"), "GitLab": diffOf("gitlab"), "Harbor": diffOf("harbor"), "Nexus": diffOf("nexus"),
	"Artifactory": diffOf("artifactory"), "GitHub Enterprise": diffOf("ghes"), "Gitea": diffOf("gitea"), "lscr.io": diffOf("lscr"),
}
