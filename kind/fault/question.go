package fault

import (
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// A question begins after the headers of UDP (RFC 768) and DNS (RFC 1035, 4.1.1). All numbers are of bytes.
const (
	udpHeader, dnsHeader = 8, 12
	// portion is what one expression of nft compares.
	portion = 16
)

// Question returns the expressions of nft that hold for a UDP packet whose first question is for this name, of whatever type,
// written as it is here. An error says that it is no name of DNS.
func Question(host string) (string, error) {
	name, err := dnsmessage.NewName(strings.TrimSuffix(host, ".") + ".")
	if err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	builder := dnsmessage.NewBuilder(nil, dnsmessage.Header{})
	if err := builder.StartQuestions(); err != nil {
		return "", err
	}
	if err := builder.Question(dnsmessage.Question{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}); err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	message, err := builder.Finish()
	if err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	const typeAndClass = 2 * 2
	wire := message[dnsHeader : len(message)-typeAndClass]
	var expressions []string
	for at := 0; at < len(wire); at += portion {
		part := wire[at:min(at+portion, len(wire))]
		expressions = append(expressions, fmt.Sprintf("@th,%d,%d 0x%x", 8*(udpHeader+dnsHeader+at), 8*len(part), part))
	}
	return strings.Join(expressions, " "), nil
}
