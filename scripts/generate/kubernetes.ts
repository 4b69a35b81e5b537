import { buildRenderer, kubernetesText } from '../chart/render-chart.js'
import type { Generator } from './generator.js'

/** deploy/kubernetes/svc-mcp.yaml, rendered from the chart. Needs Go (.ci/install-packages). */
export const kubernetes: Generator = {
  files() {
    const renderer = buildRenderer()
    try {
      return new Map([['deploy/kubernetes/svc-mcp.yaml', kubernetesText(renderer)]])
    } finally {
      renderer.remove()
    }
  },
}
