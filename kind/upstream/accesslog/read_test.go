package accesslog

import (
	"strings"
	"testing"
)

func TestReadUntil(t *testing.T) {
	const one = `{"path":"/v2/","kind":"base","asker":"cache"}` + "\n"
	const settle = `{"path":"/-/settle","query":"m1"}` + "\n"
	for name, tc := range map[string]struct {
		log     string
		records int
		err     string
	}{
		"all before the mark":     {one + one + settle + one, 2, ""},
		"other marks left out":    {one + strings.ReplaceAll(settle, "m1", "m0") + one + settle, 2, ""},
		"no mark":                 {one, 0, "ends before the request /-/settle?m1"},
		"mark of somebody else":   {one + strings.ReplaceAll(settle, "m1", "m11"), 0, "ends before"},
		"a line is not a record":  {one + "panic: x\n" + settle, 0, `line 2, "panic: x"`},
		"a line was cut":          {one[:20] + "\n" + settle, 0, "line 1"},
		"nothing but the request": {settle, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := NewReader(strings.NewReader(tc.log)).Until("m1")
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if len(records) != tc.records {
				t.Errorf("%d records, want %d", len(records), tc.records)
			}
		})
	}
}

// TestReaderGoesOn: each call of Until returns the earlier and the new records, and a caller's
// changes to the result have no effect.
func TestReaderGoesOn(t *testing.T) {
	const one, settle = `{"path":"/v2/","kind":"base"}` + "\n", `{"path":"/-/settle","query":"m1"}` + "\n"
	r := NewReader(strings.NewReader(one + settle + one + one + strings.ReplaceAll(settle, "m1", "m2")))
	first, err := r.Until("m1")
	if err != nil || len(first) != 1 {
		t.Fatalf("%d records, error %v", len(first), err)
	}
	_ = append(first, Record{Path: "/mine"})
	second, err := r.Until("m2")
	if err != nil || len(second) != 3 || second[1].Path != "/v2/" {
		t.Fatalf("%v, error %v", second, err)
	}
	if _, err := r.Until("m3"); err == nil {
		t.Error("no error at the end")
	}
}
