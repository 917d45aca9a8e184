// Package webhook holds the admission webhooks of the extension, one package for each below it.
package webhook
