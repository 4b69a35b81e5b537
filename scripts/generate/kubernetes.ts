/** `npm run kubernetes`: renders deploy/kubernetes/svc-mcp.yaml from the chart. Needs Go (.ci/install-packages). */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildRenderer, kubernetesText } from './chart/render-chart.js'

const renderer = buildRenderer()
try {
  writeFileSync(fileURLToPath(new URL('../deploy/kubernetes/svc-mcp.yaml', import.meta.url)), kubernetesText(renderer))
} finally {
  renderer.remove()
}
