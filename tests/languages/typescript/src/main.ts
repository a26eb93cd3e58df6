import { KubeConfig } from "@kubernetes/client-node";
import { Operator } from "./operator.js";

const config = new KubeConfig();
config.loadFromDefault();
const operator = new Operator(config);
process.once("SIGTERM", () => void operator.stop());
process.once("SIGINT", () => void operator.stop());
await operator.start();
