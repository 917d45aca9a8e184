package server

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestVerify uses the example of the documentation of AWS, "Elements of an AWS API request
// signature".
func TestVerify(t *testing.T) {
	example := ECR{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	request := httptest.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	request.Header.Set("X-Amz-Date", "20150830T123600Z")
	const signature = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	authorization := algorithm + " Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, " +
		"SignedHeaders=content-type;host;x-amz-date, Signature=" + signature
	request.Header.Set("Authorization", authorization)
	if err := example.verify(request, nil, "iam", "us-east-1"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(a *ECR, r *http.Request){
		"another secret": func(a *ECR, _ *http.Request) { a.SecretAccessKey += "x" },
		"another key":    func(a *ECR, _ *http.Request) { a.AccessKeyID = "OTHER" },
		"another date":   func(_ *ECR, r *http.Request) { r.Header.Set("X-Amz-Date", "20150830T123601Z") },
		"another host":   func(_ *ECR, r *http.Request) { r.Host = "other.amazonaws.com" },
		"none":           func(_ *ECR, r *http.Request) { r.Header.Del("Authorization") },
	} {
		access, changed := example, request.Clone(t.Context())
		change(&access, changed)
		if err := access.verify(changed, nil, "iam", "us-east-1"); err == nil {
			t.Errorf("%s: the signature is accepted", name)
		}
	}
	if example.verify(request, []byte("body"), "iam", "us-east-1") == nil || example.verify(request, nil, "ecr", "us-east-1") == nil ||
		example.verify(request, nil, "iam", "eu-central-1") == nil {
		t.Error("another body, service or region is accepted")
	}
}

const ecrHost, ecrAPI = "123456789012.dkr.ecr.eu-central-1.amazonaws.com", "api.ecr.eu-central-1.amazonaws.com"

// signedRequest signs with the code under test, which TestVerify compares with an example.
func (a ECR) signedRequest(body string) *http.Request {
	request := httptest.NewRequest(http.MethodPost, "https://"+ecrAPI+"/", strings.NewReader(body))
	request.Header.Set("X-Amz-Target", ecrTarget)
	request.Header.Set("X-Amz-Date", "20260101T000000Z")
	const scope, signed = "20260101/eu-central-1/ecr/aws4_request", "host;x-amz-date;x-amz-target"
	canonical := strings.Join([]string{
		http.MethodPost, "/", "", "host:" + ecrAPI, "x-amz-date:20260101T000000Z", "x-amz-target:" + ecrTarget, "", signed, hash([]byte(body)),
	}, "\n")
	key := []byte("AWS4" + a.SecretAccessKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = sign(key, part)
	}
	text := strings.Join([]string{algorithm, "20260101T000000Z", scope, hash([]byte(canonical))}, "\n")
	request.Header.Set("Authorization", algorithm+" Credential="+a.AccessKeyID+"/"+scope+", SignedHeaders="+signed+
		", Signature="+hex.EncodeToString(sign(key, text)))
	return request
}

func answerTo(handler http.Handler, request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func TestECR(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ecr.json")
	handler := sellTokens(path)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ask := func(path, password, userAgent string) int {
		request := httptest.NewRequest(http.MethodGet, "https://"+ecrHost+path, nil)
		request.Header.Set("User-Agent", userAgent)
		if password != "" {
			request.SetBasicAuth("AWS", password)
		}
		return answerTo(handler, request).Code
	}
	if code := ask("/v2/", "", ""); code != http.StatusTeapot {
		t.Errorf("without an ECR it is %d", code)
	}
	access := ECR{AccessKeyID: "key", SecretAccessKey: "secret", Life: time.Minute}
	replace := func() {
		t.Helper()
		content, err := access.Encode()
		if err == nil {
			err = ReplaceECR(path, bytes.NewReader(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace()
	sold := answerTo(handler, access.signedRequest("{}"))
	var body struct {
		AuthorizationData []struct {
			AuthorizationToken string
			ExpiresAt          int64
		}
	}
	if err := json.Unmarshal(sold.Body.Bytes(), &body); err != nil || len(body.AuthorizationData) != 1 {
		t.Fatalf("status %d, %s, %v", sold.Code, sold.Body, err)
	}
	decoded, err := base64.StdEncoding.DecodeString(body.AuthorizationData[0].AuthorizationToken)
	token, found := strings.CutPrefix(string(decoded), "AWS:")
	if err != nil || !found || time.Until(time.Unix(body.AuthorizationData[0].ExpiresAt, 0)) > time.Minute {
		t.Fatalf("token %q, %+v, %v", decoded, body, err)
	}
	for _, tc := range []struct {
		path, password, userAgent string
		want                      int
	}{
		{"/v2/", "", "containerd/v2", http.StatusUnauthorized},
		{"/v2/a/manifests/b", "wrong", "containerd/v2", http.StatusForbidden},
		{"/v2/a/manifests/b", token, "containerd/v2", http.StatusTeapot},
		{"/hop1/v2/a/blobs/b", "", "containerd/v2", http.StatusTeapot},
		{"/v2/", "", "registry-cache-testbed/1", http.StatusTeapot},
	} {
		if got := ask(tc.path, tc.password, tc.userAgent); got != tc.want {
			t.Errorf("%+v: status %d", tc, got)
		}
	}
	other := access
	other.SecretAccessKey = "other"
	if refused := answerTo(handler, other.signedRequest("{}")); refused.Code != http.StatusBadRequest || !strings.Contains(refused.Body.String(), "InvalidSignature") {
		t.Errorf("another secret: %d %s", refused.Code, refused.Body)
	}
	access.Life = time.Hour
	replace()
	if got := ask("/v2/", token, ""); got != http.StatusForbidden {
		t.Errorf("a revoked token is answered %d", got)
	}
}

func TestReplaceRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.json")
	for name, replace := range map[string]func(string, io.Reader) error{"ECR": ReplaceECR, "faults": ReplaceFaults} {
		if err := replace(path, strings.NewReader("{secret")); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a refused file was written: %v", err)
	}
}
