// Package webhook holds the admission webhooks of the extension, one per subpackage.
package webhook
