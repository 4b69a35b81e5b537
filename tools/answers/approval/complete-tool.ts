import type { AnyTool } from '../../define.js'
import { withPlan } from './plan-requests.js'
import { withPreview } from './preview-dry-run.js'

/**
 * Adds to a tool what every tool has and its file need not say: a tool that changes something in the PCE can show a
 * preview of the change, and its requests. The list of tools and the parts of a build both go through this function, so
 * that a built tool is that of the sources.
 */
export const completeTool = (tool: AnyTool): AnyTool => withPlan(withPreview(tool))
