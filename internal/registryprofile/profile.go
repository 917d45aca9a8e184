// Package registryprofile makes a plain registry behave like a known one, for example Docker Hub.
//
// A Profile is plain data: tests change, print and shrink it, and the testbed sends it as JSON.
// Profiles contains the profiles of known registries.
package registryprofile

// Sites of a registry. Its handler serves all of them. The caller of Profile.Handler provides their
// URLs.
const (
	Same    = "same"    // the host that was asked
	Port    = "port"    // another port of that host
	Sibling = "sibling" // another host of the same registrable domain
	Foreign = "foreign" // a host of another domain
	Private = "private" // a private IP address
)

// Objects to which a field of a profile applies. An empty field means both.
const (
	Manifests = "manifests"
	Blobs     = "blobs"
)

// Profile is the behavior of a registry. The zero value changes nothing.
type Profile struct {
	// Description lists what is special about the registry. Source lists where that is reported.
	Description string `json:",omitzero"`
	Source      string `json:",omitzero"`

	// Challenge is the challenge for requests without credentials: basic, bearer, both, or empty for
	// none.
	Challenge string `json:",omitzero"`
	// Realms are the sites of the token server. There is a challenge for each. The default is Same.
	Realms []string `json:",omitzero"`
	// Scope is the scope in the challenge. If it is empty, the challenge contains the scope of the
	// repository. "-" omits the scope. A token for any other Scope is valid for all repositories.
	// RootScope is the scope in the challenge of /v2/, if Scope is empty.
	Scope     string `json:",omitzero"`
	RootScope string `json:",omitzero"`
	// Username and Password are required by the token server or, for the challenge basic, by the
	// registry. If Username is empty, any are accepted. With Anonymous, the token server requires
	// none.
	Username  string `json:",omitzero"`
	Password  string `json:",omitzero"`
	Anonymous bool   `json:",omitzero"`

	// TokenLife is the number of seconds for which a token is valid. 0 means forever. TokenExpiresIn
	// is the field expires_in, if not 0. TokenIssuedAt adds the field issued_at, TokenIssuedAgo
	// seconds in the past.
	TokenLife      int  `json:",omitzero"`
	TokenExpiresIn int  `json:",omitzero"`
	TokenIssuedAt  bool `json:",omitzero"`
	TokenIssuedAgo int  `json:",omitzero"`
	// TokenField is the field that contains the token: token or access_token. By default, both fields
	// contain it. For refresh_token, html and empty, the answer contains no token.
	TokenField string `json:",omitzero"`
	// TokenPost and TokenGet are the statuses with which the token server refuses POST and GET, unless
	// 0. It does not refuse a POST with RefreshToken.
	TokenPost int `json:",omitzero"`
	TokenGet  int `json:",omitzero"`
	// RefreshToken is sent with each token.
	RefreshToken string `json:",omitzero"`
	// TokenStatus is the status of the token server for the first TokenTimes requests (all if 0).
	// TokenRetryAfter is the header Retry-After of these answers.
	TokenStatus     int    `json:",omitzero"`
	TokenTimes      int    `json:",omitzero"`
	TokenRetryAfter string `json:",omitzero"`
	// TokenHangs makes the token server accept requests and never answer.
	TokenHangs bool `json:",omitzero"`
	// Refused is the status for an invalid token, by default 401. Only a 401 contains a challenge.
	// RefusedChallenge is its kind: basic, none, or by default Challenge.
	Refused          int    `json:",omitzero"`
	RefusedChallenge string `json:",omitzero"`

	// Missing replaces the status 404.
	Missing int `json:",omitzero"`
	// Answers replace answers of the registry. The first one that matches is used.
	Answers []Answer `json:",omitzero"`
	// Headers are set in all answers of the registry.
	Headers map[string]string `json:",omitzero"`

	// HeadWithoutDigest, HeadWithoutLength and HeadZeroLength change successful answers to HEAD.
	HeadWithoutDigest bool `json:",omitzero"`
	HeadWithoutLength bool `json:",omitzero"`
	HeadZeroLength    bool `json:",omitzero"`

	// Redirect is the status of redirects, by default 302. RedirectOf names the redirected objects.
	// RedirectTo are the sites of the redirects, in order. The last one answers.
	Redirect   int      `json:",omitzero"`
	RedirectOf string   `json:",omitzero"`
	RedirectTo []string `json:",omitzero"`
	// RedirectRelative omits the host in the Location if the site is Same.
	RedirectRelative bool `json:",omitzero"`
	// RedirectSigned adds a signature to the Location. The signature is valid once, and expires after
	// RedirectLife seconds unless that is 0. A request that also contains credentials is refused with
	// 400, as in S3.
	RedirectSigned bool `json:",omitzero"`
	RedirectLife   int  `json:",omitzero"`
	// RedirectChallenge is the Challenge of the targets. Each of them is its own token server, and
	// accepts any credentials or none.
	RedirectChallenge string `json:",omitzero"`

	// BodyOf names the objects to which the fields below apply. They apply to the first BodyTimes GET
	// requests for each object, or to all if that is 0.
	BodyOf    string `json:",omitzero"`
	BodyTimes int    `json:",omitzero"`
	// Silence is the delay of the header in milliseconds. Rate is in bytes per second, unlimited if 0.
	Silence int `json:",omitzero"`
	Rate    int `json:",omitzero"`
	// CutAfter is the number of bytes after which the connection ends, unless 0.
	CutAfter int `json:",omitzero"`
	// Damaged inverts a byte in the middle of the body.
	Damaged bool `json:",omitzero"`
	// Chunked omits Content-Length. ZeroLength sends a Content-Length of 0 and no body.
	Chunked    bool `json:",omitzero"`
	ZeroLength bool `json:",omitzero"`
	// Gzip compresses the body, even if the client did not ask for that.
	Gzip bool `json:",omitzero"`
	// Digest changes the header Docker-Content-Digest: none removes it, wrong replaces it.
	Digest string `json:",omitzero"`
	// ContentType replaces the Content-Type. "-" removes it, and "+…" appends to it.
	ContentType string `json:",omitzero"`
	// Ranges changes the answer to a range: ignored (the whole body), 416, other (a different range,
	// labeled correctly), or lies (a different range, labeled as the requested one).
	Ranges string `json:",omitzero"`
}

// Answer replaces the answer of a registry to some requests.
type Answer struct {
	// Method and Path select the requests. Method may be empty, and Path is a regular expression. At
	// the n-th target of a redirect, the path begins with /hop<n>.
	Method string `json:",omitzero"`
	Path   string `json:",omitzero"`
	// Early answers before the credentials are checked.
	Early bool `json:",omitzero"`
	// Times limits how often this answer is given for each path. 0 means no limit.
	Times int `json:",omitzero"`
	// Status is the status of the answer. 0 means 200.
	Status     int    `json:",omitzero"`
	RetryAfter string `json:",omitzero"`
	// Document is the body: empty, html, or the code of an error document in JSON.
	Document string `json:",omitzero"`
}
