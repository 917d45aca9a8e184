// Package charts contains the Helm charts of the extension and its admission, and the image vector
// of the images that the extension deploys into shoots. It imports no package of this repository.
package charts
