package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

const algorithm = "AWS4-HMAC-SHA256"

var authorization = regexp.MustCompile(`^` + algorithm +
	` Credential=([^/]+)/(\d{8}/([^/]+)/([^/]+)/aws4_request), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$`)

var (
	errUnsigned  = errors.New("MissingAuthenticationTokenException")
	errUnknown   = errors.New("UnrecognizedClientException")
	errSignature = errors.New("InvalidSignatureException")
)

// verify checks Signature Version 4 of a request for the service in the region:
// docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func (a ECR) verify(r *http.Request, body []byte, service, region string) error {
	parts := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		return errUnsigned
	}
	id, scope, signed := parts[1], parts[2], parts[5]
	if id != a.AccessKeyID {
		return errUnknown
	}
	canonical := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery}
	for name := range strings.SplitSeq(signed, ";") {
		canonical = append(canonical, name+":"+headerOf(r, name))
	}
	canonical = append(canonical, "", signed, hash(body))
	text := strings.Join([]string{algorithm, r.Header.Get("X-Amz-Date"), scope, hash([]byte(strings.Join(canonical, "\n")))}, "\n")
	key := []byte("AWS4" + a.SecretAccessKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = sign(key, part)
	}
	if parts[3] != region || parts[4] != service || !hmac.Equal([]byte(hex.EncodeToString(sign(key, text))), []byte(parts[6])) {
		return errSignature
	}
	return nil
}

// headerOf returns the value of a signed header. net/http keeps two headers in other fields.
func headerOf(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	return strings.TrimSpace(strings.Join(r.Header.Values(name), ","))
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func sign(key []byte, text string) []byte {
	code := hmac.New(sha256.New, key)
	_, _ = code.Write([]byte(text)) // never fails
	return code.Sum(nil)
}
