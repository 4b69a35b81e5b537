/** The script of the pages that `svc-mcp draw` writes. */
import { explore } from './explore.js'

const root = document.getElementById('picture')
if (root !== null) explore(root)
