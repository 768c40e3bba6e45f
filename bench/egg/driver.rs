//! Runs egg on rules and terms that come as lines, and takes the processor time of the run alone: the peer
//! of the `egraph` bench.
//! Requests: `rule NAME LEFT RIGHT`, `term TEXT`, `clear`, `run ITERATIONS plain|proofs`, fields apart by
//! tabs. The answer to `run` is `NANOSECONDS NODES CLASSES`.

use egg::{define_language, rewrite, Id, Pattern, Rewrite, Runner, SimpleScheduler, Symbol};
use std::io::{stdin, stdout, BufRead, Write};
use std::time::Duration;

define_language! {
    enum Math {
        "d" = Diff([Id; 2]),
        "i" = Integral([Id; 2]),
        "+" = Add([Id; 2]),
        "-" = Sub([Id; 2]),
        "*" = Mul([Id; 2]),
        "/" = Div([Id; 2]),
        "pow" = Pow([Id; 2]),
        "ln" = Ln(Id),
        "sqrt" = Sqrt(Id),
        "sin" = Sin(Id),
        "cos" = Cos(Id),
        Constant(i64),
        Symbol(Symbol),
    }
}

fn rule(name: &str, left: &str, right: &str) -> Rewrite<Math, ()> {
    let left: Pattern<Math> = left.parse().expect("a left side");
    let right: Pattern<Math> = right.parse().expect("a right side");
    rewrite!(name; left => right)
}

/// Nanoseconds that this thread has run (Linux, proc(5)): other programs on the machine do not count.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("a Linux kernel");
    text.split(' ').next().and_then(|field| field.parse().ok()).expect("a number")
}

fn run(rules: &[Rewrite<Math, ()>], terms: &[String], iterations: usize, proofs: bool) -> String {
    let mut runner: Runner<Math, ()> = Runner::default()
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(iterations)
        .with_node_limit(usize::MAX)
        .with_time_limit(Duration::from_secs(600));
    if proofs {
        runner = runner.with_explanations_enabled();
    }
    for term in terms {
        runner = runner.with_expr(&term.parse().expect("a term"));
    }
    let start = processor_time();
    let runner = runner.run(rules);
    let time = processor_time() - start;
    let (nodes, classes) = (runner.egraph.total_number_of_nodes(), runner.egraph.number_of_classes());
    format!("{time}\t{nodes}\t{classes}")
}

fn main() {
    let (mut rules, mut terms) = (Vec::new(), Vec::new());
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["rule", name, left, right] => rules.push(rule(name, left, right)),
            ["term", text] => terms.push(text.to_string()),
            ["clear"] => {
                rules.clear();
                terms.clear();
            }
            ["run", iterations, mode] => {
                let most = iterations.parse().expect("a number");
                println!("{}", run(&rules, &terms, most, mode == "proofs"));
                stdout().flush().expect("a reader");
            }
            _ => panic!("unknown request: {line}"),
        }
    }
}
