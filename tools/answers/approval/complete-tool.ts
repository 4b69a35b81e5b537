import type { AnyTool } from '../../define.js'
import { withPlan } from './plan-requests.js'
import { withPreview } from './preview-dry-run.js'

/**
 * Adds to a tool what every tool has, so that the tool's own file need not define it: a preview of the change for tools
 * that change something in the PCE, and their requests. The list of tools and the build both use this function, so that
 * a built tool is the same as one from the sources.
 */
export const completeTool = (tool: AnyTool): AnyTool => withPlan(withPreview(tool))
