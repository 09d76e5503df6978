// Seconds of one pinocchio::aba, in a loop in C++: the best of many.
//
// Reads from standard input the number of joints, gravity, then for each joint its placement in the joint before
// (rotation by rows, translation), mass, centre and inertia about the centre, all in its own frame, whose z is
// the axis; then q, v and tau. Writes the seconds of a call and the accelerations.

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/multibody.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

namespace pin = pinocchio;

template <int N>
static Eigen::Matrix<double, N, 1> numbers() {
  Eigen::Matrix<double, N, 1> x;
  for (int i = 0; i < N; ++i) std::cin >> x[i];
  return x;
}

int main() {
  int n;
  std::cin >> n;
  pin::Model model;
  model.gravity.linear() = numbers<3>();
  pin::JointIndex before = 0;
  for (int i = 0; i < n; ++i) {
    const auto r = numbers<9>();
    const Eigen::Matrix3d R = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(r.data());
    const Eigen::Vector3d p = numbers<3>();
    const double m = numbers<1>()[0];
    const Eigen::Vector3d c = numbers<3>();
    const auto e = numbers<9>();
    const Eigen::Matrix3d I = Eigen::Map<const Eigen::Matrix3d>(e.data());
    before = model.addJoint(before, pin::JointModelRZ(), pin::SE3(R, p), "J" + std::to_string(i));
    model.appendBodyToJoint(before, pin::Inertia(m, c, I), pin::SE3::Identity());
  }
  Eigen::VectorXd q(n), v(n), tau(n);
  for (auto *x : {&q, &v, &tau})
    for (int i = 0; i < n; ++i) std::cin >> (*x)[i];
  pin::Data data(model);
  const int calls = 20000;
  double best = 1e9;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      pin::aba(model, data, q, v, tau, CONVENTION);
      q[0] += 1e-18 * data.ddq[n - 1];  // every call depends on the one before
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / calls);
  }
  std::printf("%.6e", best);
  for (int i = 0; i < n; ++i) std::printf(" %.17g", data.ddq[i]);
  std::printf("\n");
}
