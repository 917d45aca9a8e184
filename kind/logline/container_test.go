package logline

import (
	"testing"
)

func TestContainer(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		want       Line
		fields     map[string]string
	}{
		{
			"distribution", `2026-11-22T00:03:31.285Z time="2026-11-22T00:03:31.28Z" level=warning msg="not there" a=b c="d e" f=`,
			Line{Time: at("2026-11-22T00:03:31.285Z"), Level: Warning, Message: "not there"},
			map[string]string{"a": "b", "c": "d e", "f": ""},
		},
		{
			"gardener-resource-manager", "2026-11-22T00:03:31.285Z 2026-11-22T00:03:31.28Z\tERROR\tReconciler error\t{\"error\": \"no\", \"o\": {\"x\": 1}}",
			Line{Time: at("2026-11-22T00:03:31.285Z"), Level: Error, Message: "Reconciler error"},
			map[string]string{"error": "no", "o": `{"x": 1}`},
		},
		{
			"console without fields", "2026-11-22T00:03:31.285Z 2026-11-22T00:03:31.28Z\tINFO\tStarted",
			Line{Time: at("2026-11-22T00:03:31.285Z"), Level: Info, Message: "Started"}, nil,
		},
		{
			"klog without structure", `2026-11-22T00:03:31.285Z W1122 00:04:23.802425       1 x.go:5] all is "bad" here`,
			Line{Time: at("2026-11-22T00:03:31.285Z"), Level: Warning, Message: `all is "bad" here`}, nil,
		},
		{
			"an access log", `2026-11-22T00:03:31.285Z 10.244.1.1 - - [22/Nov/2026:00:04:31 +0000] "GET /v2/ HTTP/1.1" 200 2`,
			Line{Time: at("2026-11-22T00:03:31.285Z"), Level: Info, Message: `10.244.1.1 - - [22/Nov/2026:00:04:31 +0000] "GET /v2/ HTTP/1.1" 200 2`}, nil,
		},
		{"nothing", "2026-11-22T00:03:31.285Z ", Line{Time: at("2026-11-22T00:03:31.285Z"), Level: Info}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := Container(tc.line)
			same(t, got, tc.want, tc.fields)
			if !ok {
				t.Error("not recognized as a container line")
			}
		})
	}
	if line, ok := Container("no time"); ok {
		t.Errorf("got %+v", line)
	}
}
