#!/usr/bin/env bash
# Opens the golden of a failed run, e2e/report/testdata/red.html, in headless Chromium, in light and in
# dark, and writes the screenshot report.png beside this script. Fails if the page loads anything from
# outside the file, or has an error. Run it after `make golden` has changed the page.
set -euo pipefail
cd "$(dirname "$0")"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "report.sh: Chromium is not installed; on Debian: sudo apt-get install chromium" >&2
  exit 3
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# shoot FILE FLAGS...: takes a screenshot. The page's policy allows nothing from outside, so that an
# attempt to load it is an error on the console.
shoot() {
  local file=$1
  shift
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$folder/profile" --enable-logging=stderr \
    --window-size=1240,1000 --screenshot="$folder/$file" "$@" "file://$PWD/../../e2e/report/testdata/red.html" 2>"$folder/log"
  if grep CONSOLE "$folder/log" >&2 || [ ! -s "$folder/$file" ]; then
    echo "report.sh: the page has errors, or no screenshot was taken" >&2
    exit 1
  fi
}

shoot dark.png --blink-settings=preferredColorScheme=0
shoot light.png --blink-settings=preferredColorScheme=1
if cmp -s "$folder/dark.png" "$folder/light.png"; then
  echo "report.sh: the page looks the same in light and in dark" >&2
  exit 1
fi
cp "$folder/light.png" report.png
echo "docs/images/report.png: $(stat -c %s report.png) bytes"
