import { buildRenderer, kubernetesText } from '../chart/render-chart.js'
import type { Generator } from './generator.js'

/** Generates deploy/kubernetes/svc-mcp.yaml from the chart. This needs Go (.ci/install-packages). */
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
