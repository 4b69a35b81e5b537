/** The module that worker threads load in order to run heavy tools (D61). */
import { createTaskRunner } from '../plugins/dispatcher/heavy/run-task.js'
import { tools } from '../tools/index.js'

export default createTaskRunner(tools)
