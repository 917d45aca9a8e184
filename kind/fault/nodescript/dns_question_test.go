package nodescript

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// matches evaluates nft expressions on a packet that begins with the UDP header.
func matches(t *testing.T, expressions string, packet []byte) bool {
	t.Helper()
	all := regexp.MustCompile(`@th,(\d+),(\d+) 0x([0-9a-f]+)`).FindAllStringSubmatch(expressions, -1)
	if len(all) == 0 {
		t.Fatalf("no expression in %q", expressions)
	}
	for _, one := range all {
		offset, _ := strconv.Atoi(one[1])
		length, _ := strconv.Atoi(one[2])
		want, err := hex.DecodeString(one[3])
		if err != nil || length > 128 || length != 8*len(want) {
			t.Fatalf("%q: length %d, %v", one[0], length, err)
		}
		if end := (offset + length) / 8; end > len(packet) || string(packet[offset/8:end]) != string(want) {
			return false
		}
	}
	return true
}

// ask returns the packet of a DNS query.
func ask(t *testing.T, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 4711, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return append(make([]byte, 8), packed...)
}

func TestQuestion(t *testing.T) {
	for _, host := range []string{"alpha.upstream.test", "a.test", strings.Repeat("long.", 40) + "upstream.test"} {
		expressions, err := DNSQuestion(host)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
			if !matches(t, expressions, ask(t, host+".", kind)) {
				t.Errorf("a question for %s (%s) does not match %s", host, kind, expressions)
			}
		}
		for _, other := range []string{"beta.upstream.test.", host + ".cluster.local.", "x" + host + "."} {
			if matches(t, expressions, ask(t, other, dnsmessage.TypeA)) {
				t.Errorf("a question for %s matches the expressions of %s", other, host)
			}
		}
	}
	if again, err := DNSQuestion("a.test."); err != nil || again != fmt.Sprintf("@th,160,64 0x%x", "\x01a\x04test\x00") {
		t.Errorf("a.test. is %s, %v", again, err)
	}
	for _, host := range []string{strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 200), "a..test"} {
		if got, err := DNSQuestion(host); err == nil {
			t.Errorf("%q is %s", host, got)
		}
	}
}
