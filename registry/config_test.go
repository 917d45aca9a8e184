package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const plainConfig = "version: 0.1\nproxy: {remoteurl: \"https://a.test\"}\n"

func writeConfig(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLoadECR(t *testing.T) {
	const both = "accesskeyid: AKIA, secretaccesskey: s3cr3t"
	for name, test := range map[string]struct{ config, want string }{
		"both":                   {plainConfig + "cache: {ecr: {" + both + "}}", ""},
		"every key":              {plainConfig + "cache: {ecr: {" + both + ", sessiontoken: t, rolearn: r, region: eu-west-1, endpoint: \"http://api.test:1\"}}", ""},
		"bytes":                  {plainConfig + "cache: {ecr: {accesskeyid: !!binary QUtJQQ==, secretaccesskey: s3cr3t}}", ""},
		"no secret":              {plainConfig + "cache: {ecr: {accesskeyid: AKIA}}", "cache.ecr.accesskeyid and cache.ecr.secretaccesskey must be set together"},
		"no ID":                  {plainConfig + "cache: {ecr: {secretaccesskey: s3cr3t}}", "must be set together"},
		"only the role":          {plainConfig + "cache: {ecr: {rolearn: r}}", "must be set together"},
		"with a username":        {"version: 0.1\nproxy: {remoteurl: \"https://a.test\", username: u, password: p}\ncache: {ecr: {" + both + "}}", "cache.ecr and proxy.username must not be set together"},
		"no URL":                 {plainConfig + "cache: {ecr: {" + both + ", endpoint: api.test}}", "cache.ecr.endpoint must have the form"},
		"unknown key":            {plainConfig + "cache: {ecr: {" + both + ", account: a}}", "unknown key account, allowed are accesskeyid, secretaccesskey, sessiontoken, rolearn, region, endpoint"},
		"unknown key at the top": {plainConfig + "s3: {}", "unknown key s3, allowed are version, log, storage, http, health, proxy, cache"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Load(writeConfig(t, filepath.Join(t.TempDir(), "config.yml"), test.config))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("the error is %v, want %s", err, test.want)
				}
				return
			}
			if err != nil || c.Cache.ECR.AccessKeyID != "AKIA" || c.Cache.ECR.SecretAccessKey != "s3cr3t" {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}

// TestLimitFollowsTheFile: the controller changes the limit without a restart.
func TestLimitFollowsTheFile(t *testing.T) {
	name := writeConfig(t, filepath.Join(t.TempDir(), "config.yml"), plainConfig+"cache: {limit: 1000}")
	c, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	writeConfig(t, name, plainConfig+"cache: {limit: 2000}")
	if got := c.Limit(); got != 2000 {
		t.Errorf("the limit is %d", got)
	}
	writeConfig(t, name, plainConfig+"cache: {limit: -1}")
	if got := c.Limit(); got != 2000 {
		t.Errorf("with a wrong file, the limit is %d", got)
	}
}
