/** What runs in a page that `svc-mcp draw` has written. */
import { explore } from './explore.js'

const root = document.getElementById('picture')
if (root !== null) explore(root)
