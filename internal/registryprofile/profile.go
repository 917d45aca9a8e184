// Package registryprofile makes a plain registry behave like one of those that people pull from.
//
// A Profile is a value: a test changes, prints and shrinks it, and the testbed sends it as JSON.
// Profiles has those of known registries.
package registryprofile

// Sites of a registry. The handler serves all of them; where they are, Profile.Handler is told.
const (
	Same    = "same"    // the host that was asked
	Port    = "port"    // another port of that host
	Sibling = "sibling" // another host of the same registrable domain
	Foreign = "foreign" // a host of another domain
	Private = "private" // a private IP address
)

// Objects that a field of a profile is about. Empty means both.
const (
	Manifests = "manifests"
	Blobs     = "blobs"
)

// Profile is the behavior of a registry. The zero value changes nothing. It has only plain data, so
// it can be sent as JSON. Sites and objects are the constants above.
type Profile struct {
	// Description and Source say what is special and where that is known from.
	Description string `json:",omitzero"`
	Source      string `json:",omitzero"`

	// Challenge is what a request without credentials gets: none if empty, basic, bearer, or both.
	Challenge string `json:",omitzero"`
	// Realms are the sites of the token server, one challenge each. None means Same.
	Realms []string `json:",omitzero"`
	// Scope is the scope in the challenge. Empty is the right one, "-" is none. Any other is good for
	// all repositories. RootScope is that of /v2/, none if empty.
	Scope     string `json:",omitzero"`
	RootScope string `json:",omitzero"`
	// Username and Password are wanted by the token server, or with basic by the registry. An empty
	// username admits everybody. With Anonymous, who sends no credentials gets a token, too.
	Username  string `json:",omitzero"`
	Password  string `json:",omitzero"`
	Anonymous bool   `json:",omitzero"`

	// TokenLife is how many seconds a token is accepted, for ever if 0. TokenExpiresIn is what the
	// token server tells, nothing if 0. TokenIssuedAt tells the time, too, TokenIssuedAgo seconds ago.
	TokenLife      int  `json:",omitzero"`
	TokenExpiresIn int  `json:",omitzero"`
	TokenIssuedAt  bool `json:",omitzero"`
	TokenIssuedAgo int  `json:",omitzero"`
	// TokenField is where the token is: token and access_token if empty, one of them, refresh_token
	// (a body without a token), html or empty.
	TokenField string `json:",omitzero"`
	// TokenPost and TokenGet are the statuses for these methods, if not 0. A POST with RefreshToken is
	// always good.
	TokenPost int `json:",omitzero"`
	TokenGet  int `json:",omitzero"`
	// RefreshToken is handed out with each token.
	RefreshToken string `json:",omitzero"`
	// TokenStatus is the answer of the token server to the first TokenTimes requests (all if 0), with
	// TokenRetryAfter as header.
	TokenStatus     int    `json:",omitzero"`
	TokenTimes      int    `json:",omitzero"`
	TokenRetryAfter string `json:",omitzero"`
	// TokenHangs lets the token server accept requests and never answer.
	TokenHangs bool `json:",omitzero"`
	// Refused is the status for a token that has expired or is unknown, 401 if 0. Only a 401 has a
	// challenge: like Challenge if empty, none, or basic.
	Refused          int    `json:",omitzero"`
	RefusedChallenge string `json:",omitzero"`

	// Missing is the status for what does not exist, instead of 404.
	Missing int `json:",omitzero"`
	// Answers replace answers of the registry. The first that matches counts.
	Answers []Answer `json:",omitzero"`
	// Headers are set in all answers of the registry.
	Headers map[string]string `json:",omitzero"`

	// HeadWithoutDigest, HeadWithoutLength and HeadZeroLength are about good answers to HEAD.
	HeadWithoutDigest bool `json:",omitzero"`
	HeadWithoutLength bool `json:",omitzero"`
	HeadZeroLength    bool `json:",omitzero"`

	// Redirect is the status of a redirect of RedirectOf (objects) through the sites of RedirectTo,
	// 302 if 0. The last one answers.
	Redirect   int      `json:",omitzero"`
	RedirectOf string   `json:",omitzero"`
	RedirectTo []string `json:",omitzero"`
	// RedirectRelative sends a Location without a host, where the site is Same.
	RedirectRelative bool `json:",omitzero"`
	// RedirectSigned adds a signature that works once, and for RedirectLife seconds if not 0. The
	// target refuses other credentials beside it with 400, as S3 does.
	RedirectSigned bool `json:",omitzero"`
	RedirectLife   int  `json:",omitzero"`
	// RedirectChallenge is like Challenge, of the targets, with the realm at the target itself. Their
	// token server admits everybody.
	RedirectChallenge string `json:",omitzero"`

	// BodyOf says which objects the fields below are about, and BodyTimes how many first GETs of each
	// object, all if 0.
	BodyOf    string `json:",omitzero"`
	BodyTimes int    `json:",omitzero"`
	// Silence is how many milliseconds pass before the header, Rate how many bytes come in a second,
	// without a limit if 0.
	Silence int `json:",omitzero"`
	Rate    int `json:",omitzero"`
	// CutAfter bytes the connection ends, if not 0.
	CutAfter int `json:",omitzero"`
	// Damaged inverts a byte in the middle.
	Damaged bool `json:",omitzero"`
	// Chunked sends no Content-Length, ZeroLength one of 0 and no body.
	Chunked    bool `json:",omitzero"`
	ZeroLength bool `json:",omitzero"`
	// Gzip compresses, though nobody asked.
	Gzip bool `json:",omitzero"`
	// Digest is what becomes of the digest header: right if empty, none, or wrong.
	Digest string `json:",omitzero"`
	// ContentType replaces that of the registry; "-" removes it, and "+…" is added to it.
	ContentType string `json:",omitzero"`
	// Ranges says what becomes of a range: honored if empty, ignored, 416, other (206 with what was
	// not asked for, labeled so), or lies (the same, labeled as asked).
	Ranges string `json:",omitzero"`
}

// Answer is what a registry says to some requests.
type Answer struct {
	// Method and Path say to which: any method if empty, and a regular expression. The path of the
	// n-th target of a redirect begins with /hop<n>.
	Method string `json:",omitzero"`
	Path   string `json:",omitzero"`
	// Early answers before credentials are looked at.
	Early bool `json:",omitzero"`
	// Times bounds how often this is answered for each path, without a bound if 0.
	Times int `json:",omitzero"`
	// Status is 200 if 0.
	Status     int    `json:",omitzero"`
	RetryAfter string `json:",omitzero"`
	// Document is the body: empty, html, or otherwise the code of an error in JSON.
	Document string `json:",omitzero"`
}
