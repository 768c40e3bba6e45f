/** The process that compiles an artifact's portable program beside the one of its machine code. */
import { answerPortable } from "../commands/actions/portable-child.ts";
import { answerOnce } from "../runtime/child/one-answer.ts";

answerOnce(answerPortable);
