//! The matrix and its report from end to end, in their smallest form.

use std::{fs, process::Command};

#[test]
fn a_run_goes_on_where_it_was_and_its_report_has_every_cell_hypothesis_and_plot() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let results = at("new/results.jsonl");
    let matrix = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_matrix"));
        command.args(["--form", "smoke", "--out"]).arg(&results).arg("--dir").arg(dir.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    matrix();
    let measured = fs::read_to_string(&results).unwrap();
    assert_eq!(measured.lines().count(), 1 + 3 * 5);
    matrix();
    assert!(fs::read_to_string(&results).unwrap() == measured, "nothing is measured again");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the stores are removed");

    let (page, document) = (at("report.html"), at("report.md"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_report"));
    command.arg("--results").arg(&results).arg("--html").arg(&page).arg("--markdown").arg(&document);
    assert!(command.status().unwrap().success());
    let (page, document) = (fs::read_to_string(page).unwrap(), fs::read_to_string(document).unwrap());
    for text in [&page, &document] {
        for part in
            ["nothing beside, 16 clients", "workers saturated, 2 clients", "arrivals at 50 %", "at most half"]
        {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.matches("SchedulerThread").count() > 5);
        assert!(!text.contains("NaN"));
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.matches("<svg").count() >= 2, "the curves of the latencies and the bars of the CPU time");
    assert!(!page.contains("http://") || page.contains("xmlns"), "nothing is loaded from elsewhere");
}
